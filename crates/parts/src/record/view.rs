//! Reading records in place.

use super::certify::{Certifier, LifeKey};
use super::layout::{
    COPY, EXPIRES, FLAGS_SHIFT, HEADER, HINT_BITS, Header, KEY_LEN_SHIFT, Kind, LEADING, LEADING_FIELD,
    LENGTHS, PARENT, VALUE_LEN_SHIFT,
};
use quipu_medium::Region;
use zerocopy::FromBytes;

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

/// A record in place.
#[derive(Clone, Copy)]
pub struct RecordView<'a> {
    /// The fixed header.
    pub header: &'a Header,
    /// The key.
    pub key: &'a [u8],
    /// The value: of a frame its records, of a large value its head. Empty for a tombstone and for a view of
    /// the key alone.
    pub value: &'a [u8],
    /// When the value expires, in milliseconds since 1970; 0 for never.
    pub expires: u64,
    /// The word in front of the key, if there is one: a [hint](RecordView::hint) or a
    /// [parent](RecordView::parent).
    pub(super) leading: u64,
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

    /// The value of the published record at `offset`, if this is a *plain* record of the key: a value that
    /// stands in it and never expires. One look at the word of kind, flags and lengths tells; of any other
    /// record nothing is said.
    ///
    /// # Safety
    /// As for [`Region::bytes`].
    #[inline(always)]
    pub unsafe fn plain_value(region: &'a Region, offset: u64, key: &[u8]) -> Option<&'a [u8]> {
        // SAFETY: forwarded.
        let (found, value) = unsafe { RecordView::plain(region, offset, Some(key.len())) }?;
        is_same_key(found, key).then_some(value)
    }

    /// Key and value of the published record at `offset`, if it is a [plain](RecordView::plain_value) one.
    ///
    /// # Safety
    /// As for [`Region::bytes`].
    #[inline(always)]
    pub unsafe fn plain_pair(region: &'a Region, offset: u64) -> Option<(&'a [u8], &'a [u8])> {
        // SAFETY: forwarded.
        unsafe { RecordView::plain(region, offset, None) }
    }

    /// Key and value of a plain record, if its key has this length, or any.
    ///
    /// # Safety
    /// As for [`Region::bytes`].
    #[inline(always)]
    unsafe fn plain(region: &'a Region, offset: u64, key_len: Option<usize>) -> Option<(&'a [u8], &'a [u8])> {
        // SAFETY: forwarded.
        let head = unsafe { region.bytes_in_pieces(offset, HEADER) }?;
        let (_, lengths) = head.split_last_chunk()?;
        let lengths = u64::from_le_bytes(*lengths);
        let leading = (lengths >> FLAGS_SHIFT & u64::from(LEADING)) * (LEADING_FIELD / u64::from(LEADING));
        const OF_WORD: u64 = ((LEADING | PARENT | COPY) as u64) << FLAGS_SHIFT;
        let read = offset + LENGTHS.start;
        // A key length that is known is one of the bits that must be there, and need not be taken out.
        let (mask, known) = match key_len {
            Some(len) => (u32::MAX, (len as u64) << KEY_LEN_SHIFT),
            None => (u16::MAX.into(), 0),
        };
        if lengths & u64::from(mask) & !OF_WORD != Kind::Value as u64 | known {
            region.note_read(read, HEADER - LENGTHS.start);
            return None;
        }
        let key_len = key_len.unwrap_or((lengths >> KEY_LEN_SHIFT) as u16 as usize);
        let len = key_len as u64 + (lengths >> VALUE_LEN_SHIFT).checked_sub(leading)?;
        let start = offset + HEADER + leading;
        // SAFETY: forwarded.
        let pair = unsafe { region.bytes_in_pieces(start, len) }?.split_at(key_len);
        region.note_read(read, start + len - read);
        Some(pair)
    }

    /// Reads the header and the key of a published record without testing its check; the value is empty.
    ///
    /// # Safety
    /// As for [`Region::bytes`].
    #[inline]
    pub unsafe fn published_key(region: &'a Region, offset: u64) -> Option<RecordView<'a>> {
        // SAFETY: forwarded.
        let bytes = unsafe {
            region.bytes_sized(offset, HEADER, |head| {
                split(head).map_or(0, |h| h.key_offset() + h.key_len.get() as u64)
            })
        }?;
        let (header, rest) = Header::ref_from_prefix(bytes).ok()?;
        let Fields { expires, leading, rest: key } = split_fields(header, rest)?;
        Some(RecordView { header, key, value: &[], expires, leading })
    }

    /// Reads and proves the record at the start of `bytes`, which stand at `offset` of a segment of this life
    /// and reach to the segment's end. The records of a frame can then be read with
    /// [`member`](RecordView::member).
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
        let view = RecordView::known(record)?;
        if view.kind() == Kind::Frame {
            let mut rest = view.value;
            while !rest.is_empty() {
                let unknown = RecordError::Unknown { kind: header.kind, flags: header.flags };
                let member = RecordView::member(rest).ok_or(unknown)?;
                rest = &rest[member.header.record_len() as usize..];
            }
        }
        Ok(view)
    }

    /// Reads the record at the start of `bytes`, the rest of a proved frame. `None` for kinds that this
    /// version does not write into frames.
    pub fn member(bytes: &'a [u8]) -> Option<RecordView<'a>> {
        let header = split(bytes)?;
        let view = RecordView::known(bytes.get(..header.record_len() as usize)?).ok()?;
        (matches!(view.kind(), Kind::Value | Kind::Tombstone) && header.flags & LEADING == 0).then_some(view)
    }

    /// The check that marks a record as void, of which these are the first [`HEADER`] bytes. The mark proves
    /// number, kind and lengths: the bytes of the record can be passed over, and never count.
    pub fn mark_of(head: &[u8; HEADER as usize], certifier: &Certifier, life: LifeKey, offset: u64) -> u64 {
        let mut marked = *head;
        marked[..size_of::<u64>()].copy_from_slice(b"is void.");
        certifier.check(life, offset, &marked)
    }

    /// Whether the bytes begin with a record that was marked as void here, in this life.
    pub fn is_marked(bytes: &[u8], certifier: &Certifier, life: LifeKey, offset: u64) -> bool {
        let Some(head) = bytes.first_chunk() else { return false };
        let is_marked =
            |header: &Header| header.check.get() == RecordView::mark_of(head, certifier, life, offset);
        split(bytes).is_some_and(is_marked)
    }

    /// Reads an unproved record at the start of `bytes`, to report what may be lost.
    pub fn legible(bytes: &'a [u8]) -> Option<RecordView<'a>> {
        let header = split(bytes)?;
        RecordView::known(bytes.get(..header.record_len() as usize)?).ok()
    }

    /// The header of an unproved record at the start of `bytes`, if the record reaches no further than these.
    /// Only [`LENGTHS`](super::LENGTHS), kind and flags are read.
    #[inline]
    pub(crate) fn claimed(bytes: &[u8]) -> Option<&Header> {
        split(bytes).filter(|header| is_known(header) && header.record_len() <= bytes.len() as u64)
    }

    /// The length that an unproved header claims.
    pub(crate) fn stated_len(header: &[u8]) -> Option<u64> {
        split(header).map(Header::record_len)
    }

    /// Reads a record whose bytes are proved, if this version knows all of its fields.
    fn known(record: &'a [u8]) -> Result<RecordView<'a>, RecordError> {
        let header = split(record).ok_or(RecordError::Invalid)?;
        let unknown = RecordError::Unknown { kind: header.kind, flags: header.flags };
        if !is_known(header) {
            return Err(unknown);
        }
        // The bytes are proved, so a newer program has written the unknown field.
        RecordView::parse(record).filter(|view| view.hint() >> HINT_BITS == 0).ok_or(unknown)
    }

    #[inline]
    fn parse(bytes: &'a [u8]) -> Option<RecordView<'a>> {
        let (header, rest) = Header::ref_from_prefix(bytes).ok()?;
        let Fields { expires, leading, rest } = split_fields(header, rest)?;
        let (key, rest) = rest.split_at_checked(header.key_len.get() as usize)?;
        let value_len = u64::from(header.value_len.get()).checked_sub(header.leading_field())?;
        let value = rest.get(..value_len as usize)?;
        Some(RecordView { header, key, value, expires, leading })
    }

    /// The meaning of the record. Only for records that were certified or published.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.header.kind).unwrap_or(Kind::Void)
    }

    /// Where the index had the key when this was written; 0 if unknown. It may be stale.
    #[inline]
    pub fn hint(&self) -> u64 {
        if self.header.flags & PARENT == 0 { self.leading } else { 0 }
    }

    /// The word of the record of its key before it; of its original, if it is a [copy](Header::is_copy). 0 if
    /// there is none.
    #[inline]
    pub fn parent(&self) -> u64 {
        if self.header.flags & PARENT != 0 { self.leading } else { 0 }
    }

    /// Whether the value lives in zones of its own.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.header.is_large()
    }
}

/// Whether two keys of one length are the same. Those of eight bytes are compared as numbers.
#[inline(always)]
fn is_same_key(one: &[u8], other: &[u8]) -> bool {
    match (<[u8; 8]>::try_from(one), <[u8; 8]>::try_from(other)) {
        (Ok(one), Ok(other)) => u64::from_le_bytes(one) == u64::from_le_bytes(other),
        _ => one == other,
    }
}

#[inline]
fn split(bytes: &[u8]) -> Option<&Header> {
    Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
}

/// Whether this version knows this kind with these flags and a key of this length.
fn is_known(header: &Header) -> bool {
    Kind::from_byte(header.kind).is_some_and(|kind| {
        const HINT: u8 = LEADING;
        const NAMES_PARENT: u8 = LEADING | PARENT;
        const NAMES_ORIGINAL: u8 = LEADING | PARENT | COPY;
        let are_known = match kind {
            Kind::Value => matches!(header.flags & !EXPIRES, 0 | HINT | NAMES_PARENT | NAMES_ORIGINAL),
            Kind::Large => matches!(header.flags & !EXPIRES, 0 | HINT),
            Kind::Tombstone => matches!(header.flags, 0 | NAMES_PARENT),
            Kind::Frame | Kind::Void | Kind::Range => header.flags == 0,
        };
        are_known && (header.key_len.get() == 0) == matches!(kind, Kind::Void | Kind::Frame)
    })
}

/// The optional fields behind the header, and the bytes behind these.
#[derive(Default)]
struct Fields<'a> {
    expires: u64,
    /// The word of a hint or of a parent.
    leading: u64,
    rest: &'a [u8],
}

#[inline]
fn split_fields<'a>(header: &Header, rest: &'a [u8]) -> Option<Fields<'a>> {
    let mut fields = Fields { rest, ..Fields::default() };
    if header.flags & (EXPIRES | LEADING) == 0 {
        return Some(fields);
    }
    if header.flags & EXPIRES != 0 {
        fields.expires = fields.take()?;
    }
    if header.flags & LEADING != 0 {
        fields.leading = fields.take()?;
    }
    Some(fields)
}

impl Fields<'_> {
    fn take(&mut self) -> Option<u64> {
        let (field, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*field))
    }
}
