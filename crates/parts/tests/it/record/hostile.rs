//! Properties of the record codec for any bytes. Used by a seeded test and by a fuzzer.

use quipu_parts::record::{
    Certifier, Content, Encoder, HINT_BITS, Header, Kind, LEADING, LEADING_FIELD, PARENT, RecordError,
    RecordView,
};
use std::hash::{BuildHasher, RandomState};
use zerocopy::FromBytes;

/// Reads bytes as a record, as they are and with a check that fits them; then encodes parts of them, and
/// reads that.
pub fn survive(data: &[u8]) {
    let Some((place, bytes)) = data.split_at_checked(4) else { return };
    let (life, offset) = (u64::from(place[0]), u64::from(u16::from_le_bytes([place[1], place[2]])) * 8);
    let certifier = Certifier::new(&[7; 32]);
    let life = certifier.life_key(life, 1);

    // Without the secret nothing passes. It is another one each time: a fuzzer watches comparisons, and would
    // learn the check that is expected.
    let unknown = RandomState::new().hash_one(data).to_le_bytes();
    let secret: [u8; 32] = std::array::from_fn(|i| unknown[i % unknown.len()]);
    let stranger = Certifier::new(&secret);
    assert!(RecordView::certified(bytes, &stranger, stranger.life_key(1, 1), offset).is_err());
    let mut forged = bytes.to_vec();
    if let Ok((header, _)) = Header::read_from_prefix(bytes)
        && let Some(record) = forged.get_mut(..header.record_len() as usize)
    {
        let check = certifier.record_check(life, offset, record);
        record[..8].copy_from_slice(&check.to_le_bytes());
        match RecordView::certified(&forged, &certifier, life, offset) {
            Ok(view) => {
                assert_eq!(view.key.len(), usize::from(header.key_len.get()));
                let (has_word, is_parent) = (header.flags & LEADING != 0, header.flags & PARENT != 0);
                let leading = if has_word { LEADING_FIELD } else { 0 };
                assert_eq!(view.value.len() as u64 + leading, u64::from(header.value_len.get()));
                assert_eq!(view.hint() >> HINT_BITS, 0);
                assert!(has_word || (view.hint() == 0 && !is_parent && view.parent() == 0));
                assert!(is_parent || !header.is_copy());
                assert_eq!(view.kind() as u8, header.kind);
                if view.kind() == Kind::Frame {
                    let mut rest = view.value;
                    while !rest.is_empty() {
                        let member = RecordView::member(rest).expect("a frame that passes has sound members");
                        assert_eq!((member.hint(), member.parent()), (0, 0));
                        rest = &rest[member.header.record_len() as usize..];
                    }
                }
            }
            Err(RecordError::Unknown { kind, flags }) => {
                assert_eq!((kind, flags), (header.kind, header.flags))
            }
            Err(RecordError::Invalid) => assert_eq!(header.kind, 0, "the check holds"),
        }
    }

    let split = usize::from(place[3]).min(bytes.len());
    let (key, value) = bytes.split_at(split);
    if key.is_empty() {
        return;
    }
    let mut encoder = Encoder::default();
    let expires = u64::from(place[1] % 2) * u64::from(place[2]);
    let hint = u64::from(place[1] / 2 % 2) * (u64::from(place[0]) << (HINT_BITS - 8));
    let word = u64::from(place[0]) << 56;
    let content = Content { expires, ..Content::value(key, value) };
    let (content, is_parent, is_copy) = match place[1] / 4 % 3 {
        1 if hint == 0 => (content.after(word), true, false),
        2 if hint == 0 => (content.copy_of(word), true, true),
        _ => (content.hinted(hint), false, false),
    };
    encoder.prepare(&certifier, life, offset, &content);
    encoder.stamp(9);
    let record = encoder.record().to_vec();
    let mut followed = record.clone();
    followed.extend_from_slice(bytes);
    let view =
        RecordView::certified(&followed, &certifier, life, offset).expect("it was encoded for this place");
    assert_eq!((view.key, view.value, view.header.sequence.get()), (key, value, 9));
    assert_eq!((view.expires, view.hint()), (expires, hint));
    assert_eq!((view.parent(), view.header.is_copy()), (if is_parent { word } else { 0 }, is_copy));
    let flip = place[0] as usize * 31 % record.len();
    followed[flip] ^= 1 << (place[1] & 7);
    assert!(RecordView::certified(&followed, &certifier, life, offset).is_err(), "byte {flip} was changed");
}
