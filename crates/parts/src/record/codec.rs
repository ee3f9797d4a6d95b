//! Writing records into a buffer and reading them in place.

use super::certify::{Certifier, LifeKey};
use super::layout::{BODY, HEADER, Header, Kind, SEQUENCE, padded};
use quipu_medium::{LINE, Region};
use zerocopy::{FromBytes, IntoBytes};

/// Why bytes are not a record of this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The check does not hold, or the lengths leave the segment: torn, old, or damaged.
    Invalid,
    /// The check holds, but this version does not know the kind or a flag: a newer program wrote it.
    Unknown {
        /// The kind byte found.
        kind: u8,
        /// The flag byte found.
        flags: u8,
    },
}

/// Builds records in a buffer that is reused, so that a put allocates nothing once it has grown.
///
/// In two steps, because a record's long part (bytes and their hash) can be ready before its sequence number is drawn,
/// which happens under the key's lock. The buffer begins with the line that the record begins in, so that whole lines
/// can be written: what stands before the record in its first line is the caller's to fill in.
#[derive(Default)]
pub struct Encoder {
    buffer: Vec<u8>,
    /// Where the record stands in the buffer: its offset modulo a line.
    start: usize,
    end: usize,
    offset: u64,
    body_check: u64,
}

impl Encoder {
    /// Encodes all of a record for `offset` in a segment of this life but its sequence number and its check.
    ///
    /// The caller keeps `key` within 65,535 bytes and `value` within 4 GiB.
    #[inline]
    pub fn prepare(
        &mut self,
        certifier: &Certifier,
        life: LifeKey,
        offset: u64,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) {
        let start = (offset % LINE) as usize;
        let body = HEADER as usize + key.len() + value.len();
        let total = padded(body as u64) as usize;
        let lines = (start + total).next_multiple_of(LINE as usize);
        if self.buffer.len() < lines {
            self.buffer.resize(lines.next_power_of_two(), 0);
        }
        let record = &mut self.buffer[start..lines];
        let header = Header {
            check: 0.into(),
            sequence: 0.into(),
            kind: kind as u8,
            flags: 0,
            key_len: (key.len() as u16).into(),
            value_len: (value.len() as u32).into(),
        };
        record[..HEADER as usize].copy_from_slice(header.as_bytes());
        record[HEADER as usize..HEADER as usize + key.len()].copy_from_slice(key);
        record[HEADER as usize + key.len()..body].copy_from_slice(value);
        record[body..].fill(0);
        self.body_check = certifier.check(life, offset, &record[BODY..total]);
        (self.start, self.end, self.offset) = (start, start + total, offset);
    }

    /// Completes the record with its sequence number.
    #[inline]
    pub fn stamp(&mut self, sequence: u64) {
        let check = Certifier::stamp(self.body_check, sequence);
        let record = &mut self.buffer[self.start..self.end];
        record[..SEQUENCE].copy_from_slice(&check.to_le_bytes());
        record[SEQUENCE..BODY].copy_from_slice(&sequence.to_le_bytes());
    }

    /// The offset that the record was prepared for.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The record.
    #[inline]
    pub fn record(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The lines that the record touches, zeros behind it. What stands before it in the first line is whatever
    /// [`before`](Encoder::before) was given.
    #[inline]
    pub fn lines(&self) -> &[u8] {
        &self.buffer[..self.end.next_multiple_of(LINE as usize)]
    }

    /// The bytes before the record in its first line.
    #[inline]
    pub fn before(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.start]
    }
}

/// A record in place.
#[derive(Clone, Copy)]
pub struct RecordView<'a> {
    /// The fixed header.
    pub header: &'a Header,
    /// The key.
    pub key: &'a [u8],
    /// The value; empty for a tombstone, and for a view of the key alone.
    pub value: &'a [u8],
}

impl<'a> RecordView<'a> {
    /// Reads a published record without testing its check. `None` if its lengths leave the region.
    ///
    /// # Safety
    /// As for [`Region::bytes`]: the record is immutable and cannot be reused while the view lives.
    #[inline]
    pub unsafe fn published(region: &'a Region, offset: u64) -> Option<RecordView<'a>> {
        // SAFETY: forwarded.
        let bytes =
            unsafe { region.bytes_sized(offset, HEADER, |head| split(head).map_or(0, |h| h.record_len())) }?;
        RecordView::parse(bytes)
    }

    /// Like [`published`](RecordView::published), but reads the header and the key only; the value is empty.
    ///
    /// # Safety
    /// As for [`Region::bytes`].
    #[inline]
    pub unsafe fn published_key(region: &'a Region, offset: u64) -> Option<RecordView<'a>> {
        // SAFETY: forwarded.
        let bytes = unsafe {
            region.bytes_sized(offset, HEADER, |head| {
                split(head).map_or(0, |h| HEADER + h.key_len.get() as u64)
            })
        }?;
        let (header, rest) = Header::ref_from_prefix(bytes).ok()?;
        Some(RecordView { header, key: rest, value: &[] })
    }

    /// Reads and proves the record at the start of `bytes`, which stand at `offset` of a segment of this life and
    /// reach to the segment's end.
    ///
    /// # Errors
    /// See [`RecordError`].
    pub fn certified(
        bytes: &'a [u8],
        certifier: &Certifier,
        life: LifeKey,
        offset: u64,
    ) -> Result<RecordView<'a>, RecordError> {
        let header = split(bytes).ok_or(RecordError::Invalid)?;
        if header.kind == 0 {
            return Err(RecordError::Invalid);
        }
        let record = bytes.get(..header.record_len() as usize).ok_or(RecordError::Invalid)?;
        if certifier.record_check(life, offset, record) != header.check.get() {
            return Err(RecordError::Invalid);
        }
        let (kind, flags) = (header.kind, header.flags);
        match Kind::from_byte(kind) {
            Some(known) if flags == 0 && (header.key_len.get() == 0) == (known == Kind::Void) => {
                RecordView::parse(record).ok_or(RecordError::Invalid)
            }
            _ => Err(RecordError::Unknown { kind, flags }),
        }
    }

    #[inline]
    fn parse(bytes: &'a [u8]) -> Option<RecordView<'a>> {
        let (header, rest) = Header::ref_from_prefix(bytes).ok()?;
        let (key, rest) = rest.split_at_checked(header.key_len.get() as usize)?;
        let value = rest.get(..header.value_len.get() as usize)?;
        Some(RecordView { header, key, value })
    }

    /// What the record says. Only for records that were certified or published.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.header.kind).unwrap_or(Kind::Void)
    }
}

#[inline]
fn split(bytes: &[u8]) -> Option<&Header> {
    Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(offset: u64, sequence: u64, kind: Kind, key: &[u8], value: &[u8]) -> Vec<u8> {
        let (certifier, life) = parts();
        let mut encoder = Encoder::default();
        // What an encoder was used for before must not show.
        encoder.prepare(&certifier, life, 8, Kind::Value, &[9; 40], &[9; 400]);
        encoder.prepare(&certifier, life, offset, kind, key, value);
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
        let bytes = encode(64, 9, Kind::Value, b"key", b"value");
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

    #[test]
    fn any_changed_byte_and_any_missing_word_is_noticed() {
        let (certifier, life) = parts();
        let bytes = encode(64, 9, Kind::Value, b"some key", &[5; 200]);
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x10;
            assert!(RecordView::certified(&damaged, &certifier, life, 64).is_err(), "byte {i}");
        }
        for word in 0..bytes.len() / 8 {
            let mut torn = bytes.clone();
            torn[word * 8..word * 8 + 8].fill(0);
            assert!(
                torn == bytes || RecordView::certified(&torn, &certifier, life, 64).is_err(),
                "word {word}"
            );
        }
        assert!(RecordView::certified(&bytes[..bytes.len() - 8], &certifier, life, 64).is_err(), "cut short");
        assert!(RecordView::certified(&[0; 256], &certifier, life, 64).is_err(), "zeros");
    }

    #[test]
    fn a_valid_record_of_an_unknown_kind_refuses_by_name() {
        let (certifier, life) = parts();
        let mut bytes = encode(0, 9, Kind::Value, b"k", b"v");
        bytes[16] = 3;
        let check = certifier.record_check(life, 0, &bytes);
        bytes[..8].copy_from_slice(&check.to_le_bytes());
        let found = RecordView::certified(&bytes, &certifier, life, 0).err();
        assert_eq!(found, Some(RecordError::Unknown { kind: 3, flags: 0 }));
    }

    #[test]
    fn the_format_of_a_record_is_frozen() {
        let bytes = encode(64, 0x0102_0304, Kind::Tombstone, b"key", b"");
        assert_eq!(bytes.len(), 32);
        assert_eq!(&bytes[8..], b"\x04\x03\x02\x01\0\0\0\0\x02\0\x03\0\0\0\0\0key\0\0\0\0\0");
        assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()), 13_217_579_010_640_895_564);
    }
}
