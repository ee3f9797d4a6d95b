//! The DRAM that a store takes is what the counting allocator says, and no more becomes resident. One test in
//! a process of its own, because others would allocate meanwhile.

use quipu::{Options, Store};
use quipu_bench::alloc;
use quipu_medium::{Pages, Region};

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

/// As many as the least that the figures in `docs/BENCHMARKS.md` speak of: a small index is mostly rounding.
const RECORDS: u64 = 3_000_000;

/// Anonymous memory of this process that is resident, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

#[test]
fn what_is_counted_is_what_becomes_resident() {
    let len = RECORDS * 80;
    let region = Region::dram(len.next_multiple_of(4 << 20), Pages::Ordinary).unwrap();
    region.prefault(0, region.len()).unwrap();
    let before = (alloc::live_bytes().unwrap(), resident());
    let store = Store::create_on(region, &Options::default()).unwrap();
    let mut client = store.client();
    for number in 0..RECORDS {
        // Any sixteen bytes will do: the index hashes them with a secret.
        let key = u128::from(number).to_le_bytes();
        client.put(&key, &number.to_le_bytes()).unwrap();
    }
    let counted = (alloc::live_bytes().unwrap() - before.0) as f64;
    let grown = resident().saturating_sub(before.1) as f64;
    assert!((counted / grown - 1.0).abs() < 0.05, "{counted} bytes are counted, {grown} became resident");
    let per_record = counted / RECORDS as f64;
    assert!((8.0..19.0).contains(&per_record), "{per_record} bytes a record");
    assert_eq!(store.stats().records, RECORDS);
}
