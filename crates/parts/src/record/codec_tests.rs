use super::*;
use crate::record::{EXPIRES, HINT_BITS, LEADING, RecordError, RecordView};

fn encode(offset: u64, sequence: u64, content: Content<'_>) -> Vec<u8> {
    let (certifier, life) = parts();
    let mut encoder = Encoder::default();
    // An earlier use of the encoder must not show.
    encoder.prepare(&certifier, life, 8, &Content::value(&[9; 40], &[9; 400]));
    encoder.prepare(&certifier, life, offset, &content);
    encoder.stamp(sequence);
    encoder.record().to_vec()
}

fn parts() -> (Certifier, LifeKey) {
    let certifier = Certifier::new(&[7; 32]);
    let life = certifier.life_key(42, 7);
    (certifier, life)
}

#[test]
fn a_record_is_valid_only_at_its_place_in_its_life() {
    let (certifier, life) = parts();
    let bytes = encode(64, 9, Content::value(b"key", b"value"));
    let view = RecordView::certified(&bytes, &certifier, life, 64).expect("valid here");
    assert_eq!((view.key, view.value, view.header.sequence.get()), (&b"key"[..], &b"value"[..], 9));
    let other_life = certifier.life_key(43, 7);
    let other_pool = Certifier::new(&[8; 32]);
    for wrong in [
        RecordView::certified(&bytes, &certifier, life, 72),
        RecordView::certified(&bytes, &certifier, other_life, 64),
        RecordView::certified(&bytes, &other_pool, other_pool.life_key(42, 7), 64),
    ] {
        assert_eq!(wrong.err(), Some(RecordError::Invalid));
    }
}

/// Every byte of the header is proved, and no byte behind it.
#[test]
fn a_check_of_the_header_alone_covers_the_header() {
    let (certifier, life) = (parts().0.of_headers_alone(), parts().1);
    let mut encoder = Encoder::default();
    encoder.prepare_by_header(&certifier, life, 64, &Content::value(b"key", b"a value").after(5));
    encoder.stamp(9);
    let bytes = encoder.record();
    let is_proved = |bytes: &[u8]| RecordView::certified(bytes, &certifier, life, 64).is_ok();
    assert!(is_proved(bytes) && !is_proved(&bytes[..bytes.len() - 8]));
    for i in 0..bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[i] ^= 1;
        assert_eq!(is_proved(&damaged), i >= HEADER as usize, "byte {i}");
    }
    assert!(RecordView::certified(bytes, &parts().0, life, 64).is_err(), "the other kind of check");
}

#[test]
fn any_changed_byte_and_any_missing_word_is_noticed() {
    let (certifier, life) = parts();
    let bytes =
        encode(64, 9, Content { expires: 77, ..Content::value(b"some key", &[5; 200]).hinted(1 << 40) });
    for i in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] ^= 0x10;
        assert!(RecordView::certified(&damaged, &certifier, life, 64).is_err(), "byte {i}");
    }
    for word in 0..bytes.len() / 8 {
        let mut torn = bytes.clone();
        torn[word * 8..word * 8 + 8].fill(0);
        assert!(torn == bytes || RecordView::certified(&torn, &certifier, life, 64).is_err(), "word {word}");
    }
    assert!(RecordView::certified(&bytes[..bytes.len() - 8], &certifier, life, 64).is_err(), "cut short");
    assert!(RecordView::certified(&[0; 256], &certifier, life, 64).is_err(), "zeros");
}

#[test]
fn a_valid_record_of_an_unknown_kind_refuses_by_name() {
    let (certifier, life) = parts();
    let mut bytes = encode(0, 9, Content::value(b"k", b"v"));
    bytes[16] = 9;
    forge(&mut bytes, 0);
    let found = RecordView::certified(&bytes, &certifier, life, 0).err();
    assert_eq!(found, Some(RecordError::Unknown { kind: 9, flags: 0 }));
}

#[test]
fn the_format_of_a_record_is_frozen() {
    let bytes = encode(64, 0x0102_0304, Content::tombstone(b"key"));
    assert_eq!(bytes.len(), 32);
    assert_eq!(&bytes[8..], b"\x04\x03\x02\x01\0\0\0\0\x02\0\x03\0\0\0\0\0key\0\0\0\0\0");
    assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()), 13_217_579_010_640_895_564);
}

#[test]
fn a_record_that_expires_says_when() {
    let (certifier, life) = parts();
    let bytes = encode(64, 9, Content { expires: 0x0102, ..Content::value(b"key", b"value") });
    assert_eq!(bytes[17], EXPIRES);
    assert_eq!(&bytes[24..], b"\x02\x01\0\0\0\0\0\0keyvalue");
    let view = RecordView::certified(&bytes, &certifier, life, 64).expect("valid");
    assert_eq!((view.key, view.value, view.expires), (&b"key"[..], &b"value"[..], 0x0102));
    assert_eq!(view.header.record_len(), bytes.len() as u64);
}

/// A check that fits what was changed.
fn forge(bytes: &mut [u8], offset: u64) {
    let (certifier, life) = parts();
    let check = certifier.record_check(life, offset, bytes);
    bytes[..8].copy_from_slice(&check.to_le_bytes());
}

#[test]
fn a_record_with_a_hint_tells_it() {
    let (certifier, life) = parts();
    let bytes = encode(64, 9, Content::value(b"key", b"value").hinted(0x0102));
    assert_eq!(&bytes[16..], b"\x01\x02\x03\0\x0d\0\0\0\x02\x01\0\0\0\0\0\0keyvalue");
    let view = RecordView::certified(&bytes, &certifier, life, 64).expect("valid");
    assert_eq!((view.key, view.value, view.expires, view.hint()), (&b"key"[..], &b"value"[..], 0, 0x0102));

    let longest = (1 << HINT_BITS) - 1;
    for kind in [Kind::Value, Kind::Large] {
        let content = Content { kind, expires: 3, ..Content::value(b"key", b"value").hinted(longest) };
        let bytes = encode(64, 9, content);
        assert_eq!(bytes[17], EXPIRES | LEADING);
        assert_eq!(&bytes[24..], b"\x03\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\0\0keyvalue");
        let view = RecordView::certified(&bytes, &certifier, life, 64).expect("valid");
        assert_eq!((view.kind(), view.key, view.value), (kind, &b"key"[..], &b"value"[..]));
        assert_eq!((view.expires, view.hint()), (3, longest));
        assert_eq!(
            (content.record_len(), view.header.record_len()),
            (bytes.len() as u64, bytes.len() as u64)
        );
    }
}

/// It does not know the flag, and counts only the fields that it knows.
#[test]
fn a_program_that_knows_no_hints_can_prove_a_record_with_one() {
    for expires in [0, 5] {
        let content = Content { expires, ..Content::value(b"key", b"some value").hinted(77) };
        let bytes = encode(64, 9, content);
        let lengths = content.header();
        let known = HEADER + u64::from(expires != 0) * 8;
        let len = known + u64::from(lengths.key_len.get()) + u64::from(lengths.value_len.get());
        assert_eq!(len.next_multiple_of(8), bytes.len() as u64);
    }
}

#[test]
fn a_hint_that_this_version_would_not_write_refuses_by_name() {
    let (certifier, life) = parts();
    let refused = |bytes: &mut Vec<u8>| {
        forge(bytes, 64);
        RecordView::certified(bytes, &certifier, life, 64).err()
    };
    let mut wider = encode(64, 9, Content::value(b"key", b"value").hinted(1));
    wider[24 + 6] = 1;
    assert_eq!(refused(&mut wider), Some(RecordError::Unknown { kind: 1, flags: LEADING }));
    let mut shorter = encode(64, 9, Content::value(b"key", b"value"));
    shorter[17] = LEADING;
    assert_eq!(refused(&mut shorter), Some(RecordError::Unknown { kind: 1, flags: LEADING }));
    let mut deleted = encode(64, 9, Content::value(b"key", b"").hinted(1));
    deleted[16] = Kind::Tombstone as u8;
    assert_eq!(refused(&mut deleted), Some(RecordError::Unknown { kind: 2, flags: LEADING }));
    // One of a frame: the value of 8 bytes would do for a hint.
    let mut encoder = Encoder::default();
    encoder.prepare_frame(64, [Content::value(b"key", &[0; 8])].into_iter(), |_| ());
    encoder.number(HEADER, 9);
    encoder.check_body(&certifier, life);
    encoder.stamp(9);
    let mut frame = encoder.record().to_vec();
    assert!(RecordView::certified(&frame, &certifier, life, 64).is_ok());
    frame[HEADER as usize + 17] = LEADING;
    assert_eq!(refused(&mut frame), Some(RecordError::Unknown { kind: 3, flags: 0 }));
}

#[test]
fn a_frame_holds_all_its_records_or_none() {
    let (certifier, life) = parts();
    let contents = [
        Content::value(b"one", b"value of one"),
        Content::tombstone(b"two"),
        Content { expires: 5, ..Content::value(b"three", b"") },
    ];
    let mut encoder = Encoder::default();
    encoder.prepare(&certifier, life, 0, &Content::value(&[9; 40], &[9; 400]));
    let mut places = Vec::new();
    encoder.prepare_frame(72, contents.iter().copied(), |place| places.push(place));
    for (i, place) in places.iter().enumerate() {
        encoder.number(*place, 100 + i as u64);
    }
    encoder.check_body(&certifier, life);
    encoder.stamp(102);
    let frame = encoder.record().to_vec();
    assert_eq!(frame.len() as u64, frame_len(contents.iter().copied()));
    let view = RecordView::certified(&frame, &certifier, life, 72).expect("valid");
    assert_eq!((view.kind(), view.header.sequence.get()), (Kind::Frame, 102));
    for (i, (content, place)) in contents.iter().zip(&places).enumerate() {
        let member = RecordView::member(&frame[*place as usize..]).expect("a record of the frame");
        assert_eq!(member.header.sequence.get(), 100 + i as u64);
        assert_eq!((member.kind(), member.key, member.value), (content.kind, content.key, content.value));
        assert_eq!(member.expires, content.expires);
        // Alone it proves nothing.
        let alone = RecordView::certified(&frame[*place as usize..], &certifier, life, 72 + place);
        assert_eq!(alone.err(), Some(RecordError::Invalid));
    }
    for i in 0..frame.len() {
        let mut damaged = frame.clone();
        damaged[i] ^= 4;
        assert!(RecordView::certified(&damaged, &certifier, life, 72).is_err(), "byte {i}");
    }
}
