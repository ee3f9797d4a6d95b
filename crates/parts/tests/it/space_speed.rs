//! How long allocation takes on ordinary memory with the processor's own persistence instructions, for
//! comparison with section 4.5 of the paper: below 1 µs for objects of 128 bytes to 16 KiB. Run it alone and
//! optimised: `cargo test --release -p quipu-parts --test it -- --ignored space_speed:: --nocapture`

use quipu_medium::{Pages, Region};
use quipu_parts::space::{FormatOptions, FreeListKind, ObjectId, PoolSpec, SETTINGS_LEN, Space};
use std::time::Instant;

const OBJECTS: u64 = 50_000;

#[test]
#[ignore = "a measurement: cargo test --release -p quipu-parts --test it -- --ignored space_speed:: --nocapture"]
fn nanoseconds_of_an_allocation() {
    for free_list in [FreeListKind::Persistent, FreeListKind::Volatile] {
        for object_size in [128, 1 << 10, 4 << 10, 16 << 10] {
            let region = Region::dram(1 << 30, Pages::Ordinary).expect("memory");
            region.prefault(0, region.len()).expect("memory");
            let options = FormatOptions {
                zone_size: 16 << 10,
                design: 0,
                settings: [0; SETTINGS_LEN],
                pools: vec![PoolSpec { id: 1, object_size, count: OBJECTS }],
                free_list,
                secret: [1; 32],
                boot_id: [0; 16],
            };
            let space = Space::format(region, &options).expect("format");
            let pool = space.pool(1).expect("the pool");
            let per_call = |act: &mut dyn FnMut()| {
                let start = Instant::now();
                (0..OBJECTS).for_each(|_| act());
                start.elapsed().as_nanos() as f64 / OBJECTS as f64
            };
            let allocate = per_call(&mut || {
                let object = pool.get().expect("sound").expect("an object");
                pool.commit(object);
            });
            let mut next = 0;
            let release = per_call(&mut || {
                pool.release(ObjectId(next));
                next += 1;
            });
            let zones = u64::from(space.free_zones());
            let start = Instant::now();
            for _ in 0..zones {
                let zone = space.get_zone(None, 0).expect("sound").expect("a zone");
                space.commit_zone(zone);
            }
            let zone = start.elapsed().as_nanos() as f64 / zones as f64;
            let region = space.region().clone();
            drop(space);
            let start = Instant::now();
            Space::open(region).expect("open");
            let open = start.elapsed().as_nanos() as f64 / (zones + OBJECTS) as f64;
            println!(
                "{free_list:?}, {object_size} bytes: get + commit {allocate:.0} ns, release {release:.0} ns, \
                 zone get + commit {zone:.0} ns, open {open:.1} ns an object"
            );
            assert!(allocate < 1000.0, "the paper's bound");
        }
    }
}
