# A pool of two parts, one on each node, inside the virtual machine.
# shellcheck shell=dash source-path=SCRIPTDIR source=check.sh disable=SC2317
. ./check.sh

pool=/mnt/nv0/two.pool part=/mnt/nv1/two.part
seq 2000 | awk '{ printf "key%d\tvalue of %d, long enough to take several zones of the pool: %0200d\n", $1, $1, $1 }' >records

# part NUMBER FIELD: what info says of that part of the pool.
part() {
  quipu info $pool --json | sed 's/.*"parts":\[//; s/\].*//' | tr '}' '\n' | sed -n "$(($1 + 1))p" | sed 's/.*"'"$2"'":"\{0,1\}\([^,"]*\).*/\1/'
}
used() {
  echo $(($(part "$1" zones) - $(part "$1" free_zones)))
}
# same NAME FOUND WANTED
same() {
  if [ "$2" = "$3" ]; then passed "$1 ($2)"; else failed "$1" "found $2, and wanted $3"; fi
}

check "create a pool of two parts" quipu create $pool --part $part --size 16M
same "info tells the first part" "$(part 0 path), node $(part 0 node), $(part 0 bytes) bytes" "$pool, node 0, 8388608 bytes"
same "info tells the second part" "$(part 1 path), node $(part 1 node), $(part 1 bytes) bytes" "$part, node 1, 8388608 bytes"
expect "the pool is of medium dax" '"medium":"dax"' quipu info $pool --json
# A writer that stays on a processor writes to the part of its node.
near=$(used 0) far=$(used 1)
check "import on the processor of node 1" taskset -c 1 quipu import $pool records --form tsv
same "its zones are of part 1" "$(($(used 0) - near)), $([ "$(used 1)" -gt "$far" ] && echo more)" "0, more"
near=$(used 1) far=$(used 0)
check "import on the processor of node 0" taskset -c 0 quipu import $pool records --form tsv
same "its zones are of part 0" "$([ "$(used 0)" -gt "$far" ] && echo more)" "more"
echo "      zones used: $(used 0) of $(part 0 zones), $(used 1) of $(part 1 zones)"
expect "check" '"keys":2000.*"sound":true' quipu check $pool --json

# Clients that are pinned to the nodes in turn, and whose designs change nothing of what they replace, write to no line of the other
# node. The insert that begins the run alone may, once: the superblock is on node 0, and the header of a part on node 1.
far() {
  quipu bench ops --design "$1" --medium dax --pool /mnt/nv0/bench.pool --part /mnt/nv1/bench.part --threads 2 --pin --records 4k --json |
    sed 's/.*"phase":"\([a-z_]*\)".*"ops":\([0-9]*\).*"remote_writes_per_op":\([0-9.]*\).*/\1 \2 \3/' |
    awk '{ far = $2 * $3; print $1, far; phases++; if (far > ($1 == "insert" ? 66 : 0)) wrong = 1 } END { exit wrong || phases < 5 }'
}
for design in quipu flatstore-h flatstore-m; do
  check "$design: no far write of pinned clients" far $design
done

# Refusals change nothing: the bytes of both files are the same before and after.
sums() {
  md5sum $pool $part
}
# unharmed NAME: the right parts are back in place, unchanged, and the pool has all records.
unharmed() {
  if [ "$(sums)" = "$before" ]; then passed "$1: no byte has changed"; else failed "$1: bytes have changed" "$(sums)"; fi
  expect "$1: the pool is whole afterwards" '"keys":2000.*"sound":true' quipu check $pool --json
  before=$(sums)
}
# refused NAME PATTERN: where the pool is opened for reading only, and for writing.
refused() {
  refuse "$1: get" "$2" quipu get $pool key1
  refuse "$1: put" "$2" quipu put $pool key1 changed
}
before=$(sums)

mv $part $part.away
refused "a missing part" "$part.*missing"
expect "a moved part: its place is told" '^value of 1234,' quipu get $pool key1234 --part 1=$part.away
mv $part.away $part
unharmed "a missing part"

quipu create /mnt/nv0/other.pool --part /mnt/nv1/other.part --size 16M >/dev/null || failed "create another pool" ''
mv $part $part.away
cp /mnt/nv1/other.part $part
refused "a part of another pool" "$part.*another pool"
refuse "a part of another pool, by its place" "/mnt/nv1/other.part.*another pool" quipu get $pool key1 --part 1=/mnt/nv1/other.part
mv $part.away $part
unharmed "a part of another pool"

mv $pool $pool.away
mv $part $pool
mv $pool.away $part
refused "swapped parts" "$pool|$part"
mv $pool $pool.away
mv $part $pool
mv $pool.away $part
unharmed "swapped parts"

cp $part $part.whole
length=$(stat -c %s $part)
truncate -s $((length - 4096)) $part
refused "a shortened part" "$part"
mv $part.whole $part
unharmed "a shortened part"
cp $pool $pool.whole
truncate -s $((length - 4096)) $pool
refused "a shortened first part" "$pool"
mv $pool.whole $pool
unharmed "a shortened first part"

# Copies of an earlier time.
cp $part $part.old
cp $pool $pool.old
check "put" quipu put $pool key1 other
before=$(sums)
mv $part $part.new
cp $part.old $part
refused "an older copy of a part" "$part.*older copy"
mv $part.new $part
unharmed "an older copy of a part"
mv $pool $pool.new
cp $pool.old $pool
refused "an older copy of the first part" "older copy"
mv $pool.new $pool
unharmed "an older copy of the first part"
rm $part.old $pool.old

# Three parts, two of them on one node.
three="/mnt/nv0/three.pool --part 1=/mnt/nv1/three.2 --part 2=/mnt/nv1/three.1"
check "create a pool of three parts" quipu create /mnt/nv0/three.pool --part /mnt/nv1/three.1 --part /mnt/nv1/three.2 --size 24M
check "three parts: put" quipu put /mnt/nv0/three.pool llama wool
# shellcheck disable=SC2086
refuse "three parts, two of them swapped" "/mnt/nv1/three.2.*it is part 2 of this pool, and part 1 is wanted" quipu get $three llama
expect "three parts: check" '"keys":1.*"sound":true' quipu check /mnt/nv0/three.pool --json

exit "$failed"
