//! Scripts of changes to small pools, which are then opened. Fastest with `TMPDIR` in memory.
#![no_main]

#[path = "../../crates/lab/tests/it/hostile_pools/script.rs"]
mod script;
#[allow(dead_code, reason = "the tests beside it use the rest")]
#[path = "../../crates/lab/tests/it/hostile_pools/victim.rs"]
mod victim;

use script::Ground;
use std::cell::LazyCell;

thread_local! {
    static GROUNDS: LazyCell<[Ground; 2]> = LazyCell::new(|| [Ground::new(true), Ground::new(false)]);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some((first, script)) = data.split_first() {
        GROUNDS.with(|grounds| grounds[usize::from(first & 1)].survive(script));
    }
});
