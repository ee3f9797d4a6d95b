//! The zones of large values: writing, reading, proving and freeing them.

use super::head::{FIXED, Head, ZONE_NUMBER};
use crate::heap::segments::{FIRST_RECORD, HeapError, LogHeap, Role, SegmentHeader, Use};
use crate::record::LifeKey;
use crate::space::ZoneId;
use quipu_medium::Node;
use zerocopy::{FromBytes, IntoBytes};

/// The zones of one value.
#[derive(Clone, Debug)]
#[must_use = "they are to be given back when the value is gone"]
pub struct ValueZones {
    life: u64,
    zones: Vec<ZoneId>,
}

impl ValueZones {
    /// The zones, in the order of the value.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ZoneId> {
        self.zones.iter().copied()
    }
}

/// A value that is durable in its zones and that nothing names yet.
#[must_use = "its zones are to be committed, or freed"]
pub struct NewValue {
    head: Vec<u8>,
    zones: ValueZones,
}

impl NewValue {
    /// The head: the value of the record that names it.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Its zones.
    pub fn zones(&self) -> &ValueZones {
        &self.zones
    }
}

/// A large value in place, as its head describes it.
#[derive(Clone, Copy)]
pub struct LargeValue<'a> {
    heap: &'a LogHeap,
    head: Head<'a>,
}

impl LogHeap {
    /// Bytes of a value that one zone holds.
    fn value_capacity(&self) -> u64 {
        self.space().zone_size() - FIRST_RECORD
    }

    /// Zones that a value of `len` bytes takes.
    pub fn value_zones(&self, len: u64) -> u64 {
        len.div_ceil(self.value_capacity())
    }

    /// Bytes of the head of a value of `len` bytes.
    pub fn head_len(&self, len: u64) -> u64 {
        FIXED + self.value_zones(len) * ZONE_NUMBER
    }

    /// The longest value whose head takes no more than `head` bytes and for which a pool that is empty has
    /// room: its head needs a segment.
    pub fn longest_value(&self, head: u64) -> u64 {
        let named = head.saturating_sub(FIXED) / ZONE_NUMBER;
        let there = u64::from(self.space().zone_count().saturating_sub(self.leave_free(Use::Put) + 1));
        named.min(there) * self.value_capacity()
    }

    /// Writes a value into zones of its own: durable when this returns, not committed.
    ///
    /// # Errors
    /// [`HeapError::Full`] if puts may not take so many zones; none is taken then.
    pub fn write_value(&self, node: Option<Node>, value: &[u8]) -> Result<NewValue, HeapError> {
        // Drawn first: the draw may begin the run, which must be durable before anything else changes.
        let life = self.draw();
        let wanted = self.value_zones(value.len() as u64);
        let full = || HeapError::Full(self.shortage(wanted * self.space().zone_size(), Use::Put));
        let Ok(count) = u32::try_from(wanted) else { return Err(full()) };
        let zones = self.space().get_zones(node, self.leave_free(Use::Put), count)?.ok_or_else(full)?;
        let (run, nonce) = (self.space().superblock().run.get(), self.nonce());
        let key = self.certifier().life_key(life, nonce);
        let mut check = value.len() as u64;
        for (zone, piece) in zones.iter().zip(value.chunks(self.value_capacity() as usize)) {
            let start = self.space().zone_offset(*zone);
            let header = SegmentHeader::open(self.certifier(), Role::Value, *zone, life, nonce, run);
            self.region().write_nt(start, header.as_bytes());
            self.region().write_nt(start + FIRST_RECORD, piece);
            check = self.certifier().check(key, check, piece);
        }
        self.region().fence();
        let head = Head::encode(value.len() as u64, life, check, &zones);
        Ok(NewValue { head, zones: ValueZones { life, zones } })
    }

    /// Commits the zones of a value, durably. Its head is written after that.
    pub fn commit_value(&self, value: &NewValue) {
        value.zones.iter().for_each(|zone| self.space().commit_zone(zone));
    }

    /// Gives the zones of a value back, durably when this returns. Nobody can reach it any more. Zones that
    /// are not the value's are passed over: only a forged head names such.
    pub fn free_value(&self, value: &ValueZones) {
        for zone in value.iter() {
            // SAFETY: a header is written only by a thread that has just taken the zone, before its commit.
            if self.space().check_zone(zone) && unsafe { self.is_of(zone, value.life) } {
                self.space().release_zone(zone);
            }
        }
    }

    /// Zones that large values take at present.
    pub fn zones_of_values(&self) -> u64 {
        self.space().committed_zones().len().saturating_sub(self.segment_count()) as u64
    }

    /// The life number of the value that a committed zone holds a piece of; `None` if it proves no such
    /// thing.
    ///
    /// # Safety
    /// Nobody changes the zone meanwhile.
    pub unsafe fn value_life(&self, zone: ZoneId) -> Option<u64> {
        // SAFETY: forwarded.
        let header = unsafe { self.value_header(zone) }?;
        header.is_valid(self.certifier(), Role::Value, zone).then(|| header.life())
    }

    /// The value that a head describes; `None` if the head contradicts itself or names a zone that does not
    /// exist.
    pub fn large_value<'a>(&'a self, head: &'a [u8]) -> Option<LargeValue<'a>> {
        let head = Head::parse(head, self.value_capacity())?;
        let exists = |zone| self.space().checked_zone_offset(zone).is_some();
        head.zones().all(exists).then_some(LargeValue { heap: self, head })
    }

    /// Whether the header of a zone says that it holds a piece of the value of this life.
    ///
    /// # Safety
    /// As for [`value_life`](LogHeap::value_life).
    unsafe fn is_of(&self, zone: ZoneId, life: u64) -> bool {
        // SAFETY: forwarded.
        let header = unsafe { self.value_header(zone) };
        header.is_some_and(|header| header.says(Role::Value, zone) && header.life() == life)
    }

    /// # Safety
    /// As for [`value_life`](LogHeap::value_life).
    unsafe fn value_header(&self, zone: ZoneId) -> Option<&SegmentHeader> {
        let start = self.space().checked_zone_offset(zone)?;
        // SAFETY: forwarded.
        let bytes = unsafe { self.region().bytes(start, FIRST_RECORD) }?;
        SegmentHeader::ref_from_bytes(bytes).ok()
    }
}

impl<'a> LargeValue<'a> {
    /// Bytes of the value.
    pub fn value_len(&self) -> u64 {
        self.head.value_len()
    }

    /// The first of its zones, which exists.
    pub fn first_zone(&self) -> Option<ZoneId> {
        self.head.zones().next()
    }

    /// Its zones, if they are its own as far as their headers say.
    ///
    /// # Safety
    /// The head is live, or nobody changes the pool meanwhile: the zones are not reused while this runs.
    pub unsafe fn own_zones(&self) -> Option<ValueZones> {
        let zones: Vec<ZoneId> = self.head.zones().collect();
        // SAFETY: forwarded.
        let is_own = |zone: &ZoneId| unsafe { self.heap.is_of(*zone, self.head.life()) };
        let mut sorted = zones.clone();
        sorted.sort_unstable();
        let are_distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        let are_committed = || zones.iter().all(|zone| self.heap.space().check_zone(*zone));
        let is_whole = are_distinct && are_committed() && zones.iter().all(is_own);
        is_whole.then_some(ValueZones { life: self.head.life(), zones })
    }

    /// Appends the bytes of the value. `None`, with `out` as it was, if a zone says that it is not the
    /// value's.
    ///
    /// # Safety
    /// As for [`own_zones`](LargeValue::own_zones).
    pub unsafe fn read(&self, out: &mut Vec<u8>) -> Option<()> {
        let before = out.len();
        out.reserve_exact(self.value_len() as usize);
        for (number, zone) in self.head.zones().enumerate() {
            // SAFETY: forwarded.
            let piece = unsafe {
                if self.heap.is_of(zone, self.head.life()) { self.piece(number, zone) } else { None }
            };
            match piece {
                Some(piece) => out.extend_from_slice(piece),
                None => {
                    out.truncate(before);
                    return None;
                }
            }
        }
        Some(())
    }

    /// The same if the zones prove that they hold this value, byte for byte.
    ///
    /// # Safety
    /// As for [`own_zones`](LargeValue::own_zones).
    pub unsafe fn proved_zones(&self) -> Option<ValueZones> {
        // SAFETY: forwarded.
        let zones = unsafe { self.own_zones() }?;
        let mut check = self.value_len();
        let mut first: Option<(u64, LifeKey)> = None;
        for (number, zone) in zones.iter().enumerate() {
            // SAFETY: forwarded.
            let (header, piece) = unsafe { (self.heap.value_header(zone)?, self.piece(number, zone)?) };
            let certifier = self.heap.certifier();
            let (nonce, key) = *first.get_or_insert_with(|| (header.nonce(), header.life_key(certifier)));
            if !header.is_valid(certifier, Role::Value, zone) || header.nonce() != nonce {
                return None;
            }
            check = certifier.check(key, check, piece);
        }
        (check == self.head.check()).then_some(zones)
    }

    /// The bytes of the value in its zone of this number.
    ///
    /// # Safety
    /// As for [`own_zones`](LargeValue::own_zones).
    unsafe fn piece(&self, number: usize, zone: ZoneId) -> Option<&'a [u8]> {
        let capacity = self.heap.value_capacity();
        let len = self.value_len().checked_sub(number as u64 * capacity)?.min(capacity);
        let start = self.heap.space().checked_zone_offset(zone)?;
        // SAFETY: forwarded.
        unsafe { self.heap.region().bytes(start + FIRST_RECORD, len) }
    }
}
