//! Bytes as files to import.
#![no_main]

#[path = "../../crates/cli/tests/it/transfer/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::survive(data));
