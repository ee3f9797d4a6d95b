# One pool on one NVDIMM, inside the virtual machine.
# shellcheck shell=dash source-path=SCRIPTDIR source=check.sh
. ./check.sh

for node in 0 1; do
  mount=/mnt/nv$node
  expect "$mount grants MAP_SYNC" '"map_sync":true' quipu probe $mount --json
  expect "$mount is of medium dax" '"medium":"dax"' quipu probe $mount --json
  found=$(quipu probe $mount --json)
  device=$(echo "$found" | sed -n 's/.*"device":{[^}]*"name":"\([^"]*\)".*/\1/p')
  expect "$mount is on node $node ($device)" "\"node\":$node,|\"node\":$node}" quipu probe $mount --json
  expect "$mount tells its persistence domain" '"persistence_domain":"memory_controller"' quipu probe $mount --json
done

seq 2000 | awk '{ print "key" $1 "\tvalue of " $1 }' >records
for design in $(quipu designs --json | field name); do
  pool=/mnt/nv0/$design.pool
  check "$design: create" quipu create "$pool" --size 16M --design "$design"
  expect "$design: the pool is of medium dax" '"medium":"dax"' quipu info "$pool" --json
  check "$design: import 2000 records" quipu import "$pool" records --form tsv
  expect "$design: a record is read back" '^value of 1234$' quipu get "$pool" key1234
  expect "$design: check" '"sound":true.*"keys":2000|"keys":2000.*"sound":true' quipu check "$pool" --json
  rm -rf "$pool" "$pool.runs"
done

# Each value that is read is compared with the one that was written.
check "bench ycsb a, 2 threads, every value checked" \
  quipu bench ycsb a --medium dax --pool /mnt/nv0/bench.pool --records 10k --threads 2 --value-size 200
check "bench ops, 2 threads, every value checked" \
  quipu bench ops --medium dax --pool /mnt/nv1/bench.pool --records 10k --threads 2

exit "$failed"
