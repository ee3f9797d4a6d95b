# One boot of a row of crashes: crash.sh ROUND ROUNDS SEED [TWIN].
#
# Each line of the file `crashes` is a pool that is written to: its design, its path, and the arguments of quipu create. Judges what
# the writers of the round before have left, and starts the next ones, which the host kills with the whole machine. The
# last boot judges alone. The acknowledgements of pool N go through the port /dev/vport0pN into a file of the host,
# which the next boot has as acknowledgements.N.
# shellcheck shell=dash source-path=SCRIPTDIR source=check.sh
. ./check.sh

round=$1 rounds=$2 common="--seed $3 --threads 2 ${4:+--twin $4}"

# judge NUMBER DESIGN POOL: judges the round before.
judge() {
  local last=$((round - 1)) name=${3##*/} judged status
  # shellcheck disable=SC2086
  judged=$(quipu-lab kill-judge "$3" --design "$2" $common --round $last --acknowledgements "acknowledgements.$1" --contents "/mnt/nv0/contents.$1" 2>&1)
  status=$?
  if [ $status -eq 0 ]; then passed "$name: $judged"; else failed "$name: round $last" "$judged"; fi
}

number=0
while read -r design pool arguments; do
  number=$((number + 1))
  if [ "$round" -eq 0 ]; then
    # shellcheck disable=SC2086
    check "${pool##*/}: create" quipu create "$pool" --design "$design" --zone-size 64K $arguments
    # The tables that the writers of this design use.
    if [ "$design" = xp ]; then check "${pool##*/}: tables" sh -c "quipu table create $pool second && quipu table create $pool third"; fi
  else
    judge $number "$design" "$pool"
  fi
  if [ "$round" -eq "$rounds" ]; then expect "${pool##*/}: check" '"sound":true' quipu check "$pool" --json; fi
done <crashes
if [ "$failed" -ne 0 ] || [ "$round" -eq "$rounds" ]; then exit "$failed"; fi

sync
echo "vm: writers begin"
number=0
while read -r design pool arguments; do
  number=$((number + 1))
  # A writer has nothing to say but acknowledgements.
  # shellcheck disable=SC2086
  (quipu-lab kill-writer "$pool" $common --round "$round" 2>&1 >/dev/vport0p$number; echo "the writer ended by itself") |
    sed "s/^/FAIL  ${pool##*/}, round $round: /" &
done <crashes
wait
