//! The counters of the simulated medium, against cases worked out by hand.

use quipu_medium::sim::{Cost, SimOptions, sched};
use quipu_medium::{LINE, Region};

fn cost(region: &Region, work: impl FnOnce(&Region)) -> Cost {
    let sim = region.simulator().expect("simulated");
    let before = sim.cost();
    work(region);
    sim.cost() - before
}

fn region(nodes: u16, dimms: u16) -> Region {
    Region::sim(SimOptions { nodes, dimms, ..SimOptions::default() })
}

#[test]
fn a_streamed_record_of_240_bytes_at_offset_8() {
    let cost = cost(&region(1, 6), |region| {
        region.write_nt(8, &[1; 240]);
        region.fence();
    });
    // Bytes 8..248: words 1..31, lines 0..4, all in the first block of 256 bytes.
    assert_eq!(cost.words_stored, 30);
    assert_eq!((cost.lines_written, cost.lines_streamed, cost.lines_flushed), (4, 4, 0));
    assert_eq!((cost.fences, cost.persists, cost.flushes), (1, 1, 0));
    assert_eq!((cost.media_write_bytes, cost.dimms_touched()), (256, 1));
}

#[test]
fn two_persisted_updates_of_a_line() {
    let cost = cost(&region(1, 6), |region| {
        region.write(0, &[1; 20]);
        region.flush(0, 20);
        region.flush(8, 8);
        region.fence();
        region.store(8, 9);
        region.persist(8, 8);
        region.persist(8, 8);
    });
    // 20 bytes touch three words; both flushes before the first fence name one line; the last persist finds
    // it clean.
    assert_eq!(cost.words_stored, 4);
    assert_eq!((cost.flushes, cost.lines_flushed, cost.lines_streamed), (4, 2, 0));
    assert_eq!((cost.fences, cost.persists), (3, 2));
    assert_eq!(cost.media_write_bytes, 256, "the write-combining buffer still holds the block");
}

#[test]
fn a_line_that_arrives_by_both_routes_counts_once() {
    let cost = cost(&region(1, 6), |region| {
        region.write(0, &[1; 8]);
        region.write_nt(8, &[1; 8]);
        region.persist(0, 8);
    });
    assert_eq!((cost.lines_flushed, cost.lines_streamed, cost.lines_persisted()), (1, 0, 1));
    assert_eq!(cost.dimm_lines[0], 1);
}

#[test]
fn aligned_pages_touch_one_dimm_each_and_others_two() {
    let aligned = cost(&region(1, 6), |region| {
        region.write_nt(8192, &[1; 4096]);
        region.fence();
    });
    assert_eq!((aligned.dimms_touched(), aligned.dimm_lines[2]), (1, 64));
    assert_eq!(aligned.media_write_bytes, 4096);
    let unaligned = cost(&region(1, 6), |region| {
        region.write_nt(2048, &[1; 4096]);
        region.fence();
    });
    assert_eq!((unaligned.dimm_lines[0], unaligned.dimm_lines[1]), (32, 32));
    assert_eq!(unaligned.media_write_bytes, 4096);
}

#[test]
fn small_scattered_writes_are_amplified_and_recent_blocks_are_combined() {
    let one_line_of_each_block = |region: &Region, blocks: u64, line: u64| {
        for block in 0..blocks {
            region.write_nt(block * 256 + line * LINE, &[1; 64]);
            region.fence();
        }
    };
    let fits = region(1, 1);
    let first = cost(&fits, |region| one_line_of_each_block(region, 64, 0));
    assert_eq!(first.media_write_bytes, 64 * 256, "fourfold");
    let second = cost(&fits, |region| one_line_of_each_block(region, 64, 1));
    assert_eq!(second.media_write_bytes, 0, "all 64 blocks are still in the buffer");
    let exceeds = region(1, 1);
    one_line_of_each_block(&exceeds, 65, 0);
    let again = cost(&exceeds, |region| one_line_of_each_block(region, 65, 1));
    assert_eq!(again.media_write_bytes, 65 * 256, "each block has left before it comes back");
}

#[test]
fn reads_count_each_line_once_per_call() {
    let cost = cost(&region(1, 6), |region| {
        region.load(0);
        region.read_racing(60, &mut [0; 8]);
        // SAFETY: nothing writes.
        assert!(unsafe { region.bytes(64, 200) }.is_some());
    });
    assert_eq!((cost.reads, cost.lines_read, cost.remote_reads), (3, 1 + 2 + 4, 0));
}

#[test]
fn failed_swaps_write_nothing() {
    let cost = cost(&region(1, 6), |region| {
        assert!(region.compare_exchange(0, 1, 2).is_err());
        assert!(region.compare_exchange(0, 0, 2).is_ok());
    });
    assert_eq!((cost.failed_swaps, cost.words_stored, cost.lines_written), (1, 1, 1));
}

#[test]
fn accesses_of_another_node_are_remote() {
    let region = region(2, 2);
    let sim = region.simulator().expect("simulated");
    let half = region.len() / 2;
    let put = || {
        if sched::task_id() == 2 {
            sim.set_node(2, 1);
        }
        region.write_nt(half, &[1; 128]);
        region.fence();
        region.load(half);
        region.load(0);
    };
    let cost = cost(&region, |_| {
        sched::run(1, vec![Box::new(put), Box::new(put)]).expect("no failure");
    });
    assert_eq!((cost.lines_written, cost.remote_lines_written), (4, 2));
    assert_eq!((cost.persists, cost.remote_persists), (2, 1));
    assert_eq!((cost.reads, cost.remote_reads, cost.lines_read, cost.remote_lines_read), (4, 2, 4, 2));
    assert_eq!(cost.dimm_lines[2], 4, "the first DIMM of node 1");
}

#[test]
fn the_estimate_follows_the_model() {
    let region = region(2, 2);
    let half = region.len() / 2;
    let cost = cost(&region, |region| {
        region.read_racing(0, &mut [0; 192]);
        region.load(half);
        region.write_nt(half, &[1; 64]);
        region.fence();
        region.write_nt(0, &[1; 64]);
        region.fence();
    });
    let expected = 113.4 + 2.0 * 64.0 / 40.0 + 180.65 + 496.83 + 310.52 + 512.0 / 13.0;
    let estimate = cost.estimate_ns();
    assert!((estimate - expected).abs() < 1e-9, "{estimate} {expected}");
}
