//! DRAM of a store is counted. One test in a process of its own, because others would allocate meanwhile.

use quipu_bench::{Config, Row, Silent, alloc, ops};

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

#[test]
fn live_bytes_and_dram_of_a_store() {
    let before = alloc::live_bytes().unwrap();
    // The thread that waits for this one may allocate a little.
    let holds = |bytes: u64| alloc::live_bytes().unwrap().abs_diff(before + bytes) < 4096;
    let block = vec![0u8; 1 << 20];
    assert!(holds(1 << 20));
    let mut grown = block;
    grown.resize(3 << 20, 1);
    assert!(holds(grown.capacity() as u64));
    std::thread::spawn(move || drop(grown)).join().unwrap();
    assert!(holds(0), "freed by another thread");

    let config = Config { records: 50_000, operations: 1_000, threads: 2, ..Config::default() };
    let mut rows: Vec<Row> = Vec::new();
    ops(&config, &Silent, &mut |row| rows.push(row)).unwrap();
    for row in &rows {
        let bytes = row.dram_bytes_per_record.unwrap();
        // An index has at least a reference for each record; and no record of 216 bytes is kept in DRAM.
        assert!((4.0..200.0).contains(&bytes), "{row:?}");
    }
    assert!(alloc::live_bytes().unwrap().abs_diff(before) < 1 << 20, "the store gave its memory back");
}
