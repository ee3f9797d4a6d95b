//! Bytes that are no records, and some that nearly are; a seeded sample of what the fuzz target `record`
//! does.

mod hostile;

use proptest::prelude::*;

/// A header with lengths that may fit what follows.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let header = (any::<[u8; 4]>(), any::<[u8; 16]>(), 0..18u8, 0..5u8, 0..40u16, 0..100u32);
    (header, prop::collection::vec(any::<u8>(), 0..140)).prop_map(
        |((place, start, kind, flags, key, value), rest)| {
            let lengths = [&[kind, flags][..], &key.to_le_bytes(), &value.to_le_bytes()].concat();
            [&place[..], &start, &lengths, &rest].concat()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_mislead_the_codec(data in prop_oneof![
        plausible(),
        prop::collection::vec(any::<u8>(), 0..300),
    ]) {
        hostile::survive(&data);
    }
}
