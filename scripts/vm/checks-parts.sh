# A pool of two parts, one on each node, inside the virtual machine.
# shellcheck shell=sh source-path=SCRIPTDIR source=check.sh
. ./check.sh

pool=/mnt/nv0/two.pool part=/mnt/nv1/two.part
seq 2000 | awk '{ print "key" $1 "\tvalue of " $1 }' >records

check "create a pool of two parts" quipu create $pool --part $part --size 64M
check "import 2000 records" quipu import $pool records --form tsv
check "bench ycsb a, 2 pinned threads" quipu bench ycsb a --pin --medium dax --pool $pool --part $part --records 10k --threads 2 --value-size 200

exit "$failed"
