//! Tests of the layout rules.

use super::*;

fn options(zone_size: u64, pools: &[PoolSpec]) -> FormatOptions {
    FormatOptions {
        zone_size,
        design: 0,
        settings: [0; SETTINGS_LEN],
        pools: pools.to_vec(),
        free_list: FreeListKind::Persistent,
        secret: [1; 32],
        boot_id: [0; 16],
    }
}

fn spec(id: u32, object_size: u64, count: u64) -> PoolSpec {
    PoolSpec { id, object_size, count }
}

/// Equal parts of so many bytes.
fn spans(len: u64, nodes: u16) -> Vec<Span> {
    let share = (len / u64::from(nodes)).next_multiple_of(PAGE);
    let span = |node: u16| {
        let start = (share * u64::from(node)).min(len);
        let end = if node + 1 == nodes { len } else { (start + share).min(len) };
        Span { node: Some(quipu_medium::Node(node)), start, len: end - start }
    };
    (0..nodes).map(span).collect()
}

#[test]
fn every_plan_keeps_the_rules() {
    for len in [64 << 10, 1 << 20, (1 << 20) + 4096, 100 << 20, 1 << 32, 1 << 40] {
        for zone_size in [4096, 3 * 4096, 16 << 10, 64 << 10, 1 << 20, 4 << 20, 6 << 20] {
            for nodes in 1..=4 {
                for pools in [&[][..], &[spec(1, 64, 100)], &[spec(1, 64, 3), spec(9, 16 << 10, 2)]] {
                    let Ok(plan) = plan(&spans(len, nodes), &options(zone_size, pools)) else {
                        assert!(len < 40 * zone_size, "{len} bytes are enough for zones of {zone_size}");
                        continue;
                    };
                    verify(&plan).expect("a plan keeps the rules");
                    for extent in plan.extents() {
                        let unused = extent.start.get() + extent.len.get()
                            - (extent.zones.get() + u64::from(extent.zone_count.get()) * zone_size);
                        assert!(unused < 2 * zone_size, "{unused} bytes unused, zones of {zone_size}");
                        assert!(extent.zones.get().is_multiple_of(zone_alignment(zone_size)));
                    }
                }
            }
        }
    }
}

#[test]
fn the_length_named_is_enough() {
    for pools in [&[][..], &[spec(1, 128, 1000)]] {
        for zone_size in [4096, 1 << 20, 6 << 20] {
            for nodes in [1, 3, 16] {
                let options = options(zone_size, pools);
                let Err(SpaceError::TooSmall { needed, found: 12288 }) = plan(&spans(12288, nodes), &options)
                else {
                    panic!("12 KiB hold a superblock and hardly a zone");
                };
                plan(&spans(needed.next_multiple_of(PAGE), nodes), &options)
                    .expect("the length named is enough");
            }
        }
    }
}

#[test]
fn contradictory_options_are_refused() {
    for bad in [
        options(1000, &[]),
        options(0, &[]),
        options(4096, &[spec(1, 100, 1)]),
        options(4096, &[spec(1, 0, 1)]),
        options(4096, &[spec(1, 64, 0)]),
        options(4096, &[spec(1, 64, u64::MAX)]),
        options(4096, &[spec(1, 64, 1), spec(1, 64, 1)]),
        options(4096, &[spec(1, 64, 1); 9]),
    ] {
        assert!(matches!(plan(&spans(1 << 20, 1), &bad), Err(SpaceError::Options { .. })));
    }
    for bad in [&[][..], &spans(1 << 20, 17), &[Span { node: None, start: 100, len: 1 << 20 }]] {
        assert!(matches!(plan(bad, &options(4096, &[])), Err(SpaceError::Options { .. })));
    }
}

#[test]
fn sizes_that_overflow_are_too_small_regions() {
    let huge = options(4096, &[spec(1, 1 << 62, 1 << 20)]);
    assert!(matches!(plan(&spans(1 << 20, 1), &huge), Err(SpaceError::TooSmall { .. })));
    let huge = options(1 << 63, &[]);
    assert!(matches!(plan(&spans(1 << 20, 1), &huge), Err(SpaceError::TooSmall { .. })));
}

/// Each single change makes the superblock impossible, and each must be refused.
#[test]
fn impossible_geometry_is_refused() {
    let good =
        plan(&spans(1 << 20, 2), &options(16 << 10, &[spec(1, 64, 10), spec(2, 4096, 4)])).expect("a plan");
    verify(&good).expect("a plan keeps the rules");
    let changes: [fn(&mut Superblock); 19] = [
        |s| s.zone_size.set(0),
        |s| s.zone_size.set(1000),
        |s| s.zone_size.set(!4095),
        |s| s.zone_free_list.set(7),
        |s| s.zone_count.set(1),
        |s| s.extent_count.set(0),
        |s| s.extent_count.set(17),
        |s| s.pool_count.set(9),
        |s| s.pools[0].object_size.set(0),
        |s| s.pools[0].count.set(u64::MAX),
        |s| s.pools[0].free_list.set(0),
        |s| s.pools[0].metadata.set(!63),
        |s| s.pools[0].objects.set(s.pools[0].metadata.get()),
        |s| s.pools[1].metadata.set(s.pools[0].metadata.get()),
        |s| s.extents[1].start.set(s.extents[0].start.get()),
        |s| s.extents[1].first_zone.set(0),
        |s| s.extents[0].zones.set(s.extents[0].start.get()),
        |s| s.extents[0].zone_count.set(1 << 31),
        |s| s.extents[1].len.set(u64::MAX),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(matches!(verify(&bad), Err(SpaceError::Geometry { .. })), "change {number} passed");
    }
}
