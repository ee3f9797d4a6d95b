//! Bytes as records, and records as bytes.
#![no_main]

#[path = "../../crates/parts/tests/it/record/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::survive(data));
