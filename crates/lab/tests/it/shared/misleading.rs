//! Values that a search for records takes for some.

/// A value full of seeming headers of records, each as long as most of a zone of so many bytes.
pub fn like_records(zone: u64) -> Vec<u8> {
    let len = (zone - zone / 8) as u32;
    let (check, number) = ([0x5a; 8], 1u64.to_le_bytes());
    let (kind_and_flags, key_len) = ([1, 0], 1u16.to_le_bytes());
    [&check[..], &number, &kind_and_flags, &key_len, &len.to_le_bytes()].concat().repeat(20)
}
