# A processor cache that is persistent, and an NVDIMM without a file system, inside the virtual machine.
# shellcheck shell=dash source-path=SCRIPTDIR source=check.sh
. ./check.sh

expect "/mnt/nv0 has a persistent cache: no flush" '"persistence_domain":"cpu_cache".*"flush":"none"' quipu probe /mnt/nv0 --json
check "/mnt/nv0: create" quipu create /mnt/nv0/cache.pool --size 16M
expect "/mnt/nv0: the pool survives a crash of the system" '"medium":"dax".*"os_crash":"yes"' quipu info /mnt/nv0/cache.pool --json

pool=/dev/nv2
seq 2000 | awk '{ print "key" $1 "\tvalue of " $1 }' >records
name="device $(readlink $pool)"
expect "$name grants MAP_SYNC, on node 1" '"map_sync":true,"medium":"dax".*"node":1,' quipu probe $pool --json
check "$name: create" quipu create $pool --size 64M
refuse "$name: create over a pool" 'its first 4096 bytes are not zero' quipu create $pool --size 64M
check "$name: import 2000 records" quipu import $pool records --form tsv
expect "$name: a record is read back" '^value of 1234$' quipu get $pool key1234
expect "$name: check" '"keys":2000.*"sound":true' quipu check $pool --json

mixed=/mnt/nv0/mixed.pool part=/dev/nv3
name="a file and $(readlink $part)"
check "$name: create" quipu create $mixed --part $part --size 32M
check "$name: import on the processor of node 1" taskset -c 1 quipu import $mixed records --form tsv
expect "$name: info" '"node":0,"path":"/mnt/nv0/mixed.pool".*"node":1,"path":"/dev/nv3"' quipu info $mixed --json
expect "$name: a record is read back" '^value of 1234$' quipu get $mixed key1234
expect "$name: check" '"keys":2000.*"sound":true' quipu check $mixed --json
mv $part /dev/away
refuse "$name: a missing device" "$part.*missing" quipu get $mixed key1
expect "$name: its place is told" '^value of 1234$' quipu get $mixed key1234 --part 1=/dev/away

exit "$failed"
