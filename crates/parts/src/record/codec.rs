//! Encoding of records in a buffer, each for its place.

use super::certify::{Certifier, LifeKey};
use super::layout::{BODY, Content, HEADER, Kind, SEQUENCE};
use quipu_medium::LINE;
use zerocopy::IntoBytes;

/// Encodes records in a buffer that is reused, so that a put allocates nothing once the buffer has grown.
///
/// Encoding takes two steps: the long part (bytes and their hash) can be ready before the sequence number is
/// drawn, which happens under the key's lock. The buffer begins with the line that the record begins in, so
/// that whole lines can be written. The caller fills in the bytes before the record.
///
/// The members of a frame have sequence numbers of their own, which the frame's check covers. So a frame is
/// checked once all of them are known.
#[derive(Default)]
pub struct Encoder {
    buffer: Vec<u8>,
    /// Offset of the record in the buffer: its offset modulo a line.
    start: usize,
    end: usize,
    offset: u64,
    body_check: u64,
}

impl Encoder {
    /// Encodes a record for `offset` in a segment of this life, except for its sequence number and its check.
    #[inline(always)]
    pub fn prepare(&mut self, certifier: &Certifier, life: LifeKey, offset: u64, content: &Content<'_>) {
        let lines = self.place(offset, content.record_len());
        write_record(&mut self.buffer[self.start..lines], content);
        self.check_body(certifier, life);
    }

    /// The same for a certifier [of headers alone](Certifier::of_headers_alone).
    pub fn prepare_by_header(
        &mut self,
        certifier: &Certifier,
        life: LifeKey,
        offset: u64,
        content: &Content<'_>,
    ) {
        let lines = self.place(offset, content.record_len());
        write_record(&mut self.buffer[self.start..lines], content);
        self.body_check = certifier.check(life, offset, &self.record()[BODY..HEADER as usize]);
    }

    /// Encodes a frame for `offset`, except for the sequence numbers and the check. Tells `each` the offset
    /// of each record in the frame.
    pub fn prepare_frame<'a>(
        &mut self,
        offset: u64,
        contents: impl Iterator<Item = Content<'a>> + Clone,
        mut each: impl FnMut(u64),
    ) {
        let len = frame_len(contents.clone());
        let lines = self.place(offset, len);
        let head = Content { kind: Kind::Frame, ..Content::value(&[], &[]) };
        let mut header = head.header();
        header.value_len.set((len - HEADER) as u32);
        let mut next = self.start;
        self.buffer[next..next + HEADER as usize].copy_from_slice(header.as_bytes());
        next += HEADER as usize;
        for content in contents {
            debug_assert_eq!(content.marks, 0, "a record of a frame has none");
            let end = next + content.record_len() as usize;
            write_record(&mut self.buffer[next..end], &content);
            each((next - self.start) as u64);
            next = end;
        }
        self.buffer[self.end..lines].fill(0);
    }

    /// Sets the sequence number of the record at this offset of the frame.
    pub fn number(&mut self, place: u64, sequence: u64) {
        let at = self.start + place as usize + SEQUENCE;
        self.buffer[at..at + 8].copy_from_slice(&sequence.to_le_bytes());
    }

    /// Makes the buffer fit a record of `len` bytes, and returns where the lines of the record end.
    #[inline]
    fn place(&mut self, offset: u64, len: u64) -> usize {
        self.start = (offset % LINE) as usize;
        self.end = self.start + len as usize;
        self.offset = offset;
        let lines = self.end.next_multiple_of(LINE as usize);
        if self.buffer.len() < lines {
            self.buffer.resize(lines.next_power_of_two(), 0);
        }
        lines
    }

    /// Hashes the body of the record, once it is complete.
    #[inline]
    pub(crate) fn check_body(&mut self, certifier: &Certifier, life: LifeKey) {
        self.body_check = certifier.check(life, self.offset, &self.record()[BODY..]);
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

    /// The lines that the record touches, zeros behind it. The bytes before it in the first line are those
    /// that [`before`](Encoder::before) was given.
    #[inline]
    pub(crate) fn lines(&self) -> &[u8] {
        &self.buffer[..self.end.next_multiple_of(LINE as usize)]
    }

    /// The bytes before the record in its first line.
    #[inline]
    pub(crate) fn before(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.start]
    }
}

/// Bytes of a frame with these records.
pub fn frame_len<'a>(contents: impl Iterator<Item = Content<'a>>) -> u64 {
    contents.fold(HEADER, |sum, content| sum.saturating_add(content.record_len()))
}

/// Writes a record without check and sequence number, and zeros behind it.
#[inline]
fn write_record(record: &mut [u8], content: &Content<'_>) {
    let Content { key, value, expires, leading, marks, .. } = *content;
    record[..HEADER as usize].copy_from_slice(content.header().as_bytes());
    let mut key_at = HEADER as usize;
    if expires | u64::from(marks) != 0 {
        let words = [(expires != 0, expires), (marks != 0, leading)];
        for (_, word) in words.into_iter().filter(|(is_there, _)| *is_there) {
            record[key_at..key_at + 8].copy_from_slice(&word.to_le_bytes());
            key_at += 8;
        }
    }
    let value_at = key_at + key.len();
    let end = value_at + value.len();
    record[key_at..value_at].copy_from_slice(key);
    record[value_at..end].copy_from_slice(value);
    record[end..].fill(0);
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
