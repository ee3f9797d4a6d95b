# One boot of a row of crashes: crash.sh ROUND ROUNDS SEED TWIN DESIGN POOL [ARGUMENTS OF quipu create].
#
# Judges what the writer of the round before has left, and starts the next one, which the host kills with the whole machine.
# The last boot judges alone. Acknowledgements go through the port /dev/vport0p1 into a file of the host, which the next boot
# has as ./acknowledgements.
# shellcheck shell=sh source-path=SCRIPTDIR source=check.sh
. ./check.sh

round=$1 rounds=$2 seed=$3 twin=$4 design=$5 pool=$6
shift 6
contents=$pool.contents
common="--seed $seed --threads 2 ${twin:+--twin $twin}"

if [ "$round" -eq 0 ]; then
  check "$design: create" quipu create "$pool" --design "$design" --zone-size 64K "$@"
else
  last=$((round - 1))
  # shellcheck disable=SC2086
  judged=$(quipu kill-judge "$pool" --design "$design" $common --round $last --acknowledgements acknowledgements --contents "$contents" 2>&1)
  status=$?
  if [ $status -eq 0 ]; then passed "$design: $judged"; else failed "$design: round $last" "$judged"; fi
fi
[ "$failed" -eq 0 ] || exit 1
if [ "$round" -eq "$rounds" ]; then
  expect "$design: check" '"sound":true' quipu check "$pool" --json
  rm -rf "$pool" "$pool.runs" "$contents"
  exit "$failed"
fi
sync
echo "vm: writer begins"
# shellcheck disable=SC2086
exec quipu kill-writer "$pool" $common --round "$round" >/dev/vport0p1
