# A pool of two parts, one on each node, inside the virtual machine.
# shellcheck shell=dash source-path=SCRIPTDIR source=check.sh
. ./check.sh

pool=/mnt/nv0/two.pool part=/mnt/nv1/two.part
seq 2000 | awk '{ print "key" $1 "\tvalue of " $1 }' >records

check "create a pool of two parts" quipu create $pool --part $part --size 32M
check "import 2000 records" quipu import $pool records --form tsv
expect "the pool is of medium dax" '"medium":"dax"' quipu info $pool --json
expect "info tells the node of the first part" "$pool.*node 0" quipu info $pool
expect "info tells the node of the second part" "$part.*node 1" quipu info $pool
expect "check" '"keys":2000.*"sound":true' quipu check $pool --json

# Clients on the processor of each node write near themselves alone.
for threads in 1 2; do
  expect "bench ycsb a, $threads pinned, no far write" '"far_writes":0' \
    quipu bench ycsb a --pin --medium dax --pool /mnt/nv0/bench.pool --part /mnt/nv1/bench.part --records 10k --threads $threads --value-size 200 --json
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
# refused NAME PATTERN: by every command that opens the pool.
refused() {
  refuse "$1: info" "$2" quipu info $pool
  refuse "$1: get" "$2" quipu get $pool key1
  refuse "$1: put" "$2" quipu put $pool key1 changed
  refuse "$1: check" "$2" quipu check $pool
}
before=$(sums)

mv $part $part.away
refused "a missing part" "$part"
mv $part.away $part
unharmed "a missing part"

quipu create /mnt/nv0/other.pool --part /mnt/nv1/other.part --size 32M >/dev/null || failed "create another pool" ''
mv $part $part.away
cp /mnt/nv1/other.part $part
refused "a part of another pool" "$part"
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

exit "$failed"
