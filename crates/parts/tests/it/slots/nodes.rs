//! Blocks in a pool of two nodes: each client takes those of its own, then others, and on a full disk too.

use super::support::{Table, fixed, heap, region_of, value};
use quipu_medium::Node;
use quipu_parts::heap::slots::SlotError;

const RESERVE: usize = 2;

/// Puts records until there is no room; tells how many, and the last error.
fn fill(table: &Table, seed: u64) -> (u64, SlotError) {
    let mut client = table.client(seed);
    for number in 0.. {
        if let Err(error) = client.put(&(seed << 32 | number).to_le_bytes(), &value(number, 504)) {
            return (number, error);
        }
    }
    unreachable!("pools are full at last")
}

#[test]
fn a_client_fills_its_own_node_then_the_other() {
    let region = region_of(512 << 10, 2);
    let table = Table::new(heap(&region, 16 << 10, fixed(), RESERVE));
    for node in [1, 0] {
        region.pin(Node(node)).expect("a node");
        let mut client = table.client(u64::from(node));
        client.put(&[node as u8; 8], &value(1, 504)).expect("room");
        let block = client.owner.as_ref().and_then(|owner| owner.block()).expect("it writes to one");
        assert_eq!(table.heap.node_of(block), Some(Node(node)));
    }
    region.pin(Node(1)).expect("a node");
    assert_eq!(table.heap.space().spills(), 0);
    let (records, error) = fill(&table, 7);
    assert!(matches!(error, SlotError::Full(_)), "{error}");
    let free = table.heap.free_blocks();
    assert!(records > 550 && free == 0, "{records} records, {free} blocks left");
    assert!(table.heap.space().spills() > 5);
}

/// Without storage for a new chunk, blocks of another node are as good, and cleaners get at the reserve.
#[test]
fn on_a_full_disk_blocks_of_the_other_node_and_the_reserve_are_taken() {
    let region = region_of(512 << 10, 2);
    let table = Table::new(heap(&region, 16 << 10, fixed(), RESERVE));
    region.pin(Node(1)).expect("a node");
    table.client(1).put(&[1; 8], &value(1, 504)).expect("room");
    region.simulator().expect("simulated").fail_reserve_after(0);
    region.pin(Node(0)).expect("a node");
    fill(&table, 3);
    assert_eq!(table.heap.free_blocks(), 0, "the blocks of node 1 were taken too");
    table.cleaner(9).put(&[9; 8], &value(9, 504)).expect("the reserve is for it");
}
