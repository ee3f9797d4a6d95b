//! The zones of an index in PM: a chain of them, found again from a root of sixteen bytes.
//!
//! An index grows, so it takes zones and no object pool, which is laid out when the pool is created. Each of its zones begins
//! with the same header, proves that it belongs to this index and to this place in the chain, and names the next one. What
//! fills the zones is the index's own affair.
//!
//! # What makes it durable
//!
//! A further zone: its header, the link of the last zone to it, fence; then the commit. A link to a zone that is not committed
//! ends the chain, and is taken back by the repair of the next open. So no zone is committed without being linked, and none
//! leaks. The first zone: its header and what it starts with, fence; the owner makes the root durable; the commit. A root whose
//! zone is not committed names no index. Nobody may take zones of the pool before the repair, since a link may name one
//! that is free.

use crate::record::Certifier;
use crate::space::{Shortage, Space, SpaceError, ZoneId};
use crate::table;
use crate::table::Fields;
use quipu_medium::{Region, WORD};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Offset of the link to the next zone.
pub(super) const NEXT: u64 = offset_of!(ChainHeader, next) as u64;
/// Offset of the word that the index may use in the first zone; no part of what the check covers.
pub(super) const HEAD: u64 = offset_of!(ChainHeader, head) as u64;
/// Bytes of a header.
pub(super) const HEADER: u64 = size_of::<ChainHeader>() as u64;
/// What the index says of a zone: a byte each.
pub(super) type Shape = [u8; 4];

/// What a zone of an index begins with.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ChainHeader {
    check: U64,
    magic: [u8; 4],
    zone: U32,
    nonce: U64,
    number: U32,
    shape: Shape,
    next: U64,
    head: U64,
    reserved: [u8; 16],
}

/// What the owner of an index keeps, durably, to find it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IndexRoot {
    zone: U32,
    reserved: [u8; 4],
    nonce: U64,
}

const _: () = {
    assert!(size_of::<ChainHeader>() == 64 && NEXT == 32 && HEAD == 40);
    assert!(offset_of!(ChainHeader, magic) == 8 && offset_of!(ChainHeader, nonce) == 16);
    assert!(offset_of!(ChainHeader, number) == 24 && offset_of!(ChainHeader, shape) == 28);
    assert!(size_of::<IndexRoot>() == 16 && offset_of!(IndexRoot, nonce) == 8);
};

impl IndexRoot {
    /// Bytes of a root.
    pub const LEN: usize = size_of::<IndexRoot>();

    pub(super) fn new(zone: ZoneId, nonce: u64) -> IndexRoot {
        IndexRoot { zone: zone.0.into(), reserved: [0; 4], nonce: nonce.into() }
    }

    /// The root as bytes.
    pub fn to_bytes(&self) -> [u8; IndexRoot::LEN] {
        zerocopy::transmute!(*self)
    }

    /// The root of these bytes; whether it names an index is for who opens it to find out.
    pub fn from_bytes(bytes: [u8; IndexRoot::LEN]) -> IndexRoot {
        zerocopy::transmute!(bytes)
    }

    /// The first zone of the index.
    pub fn zone(&self) -> ZoneId {
        ZoneId(self.zone.get())
    }

    pub(super) fn nonce(&self) -> u64 {
        self.nonce.get()
    }
}

/// A zone of an index, by its place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) zone: ZoneId,
    pub(super) shape: Shape,
}

/// The zones of an index that was found.
pub(super) struct Found {
    pub(super) zones: Vec<Linked>,
    /// Where the chain ends with a link to a zone that was not committed any more: the link, which a repair has to clear.
    pub(super) dangling: Option<u64>,
}

/// Taking, linking and finding the zones of one index.
pub(super) struct Chain {
    pub(super) space: Arc<Space>,
    pub(super) region: Region,
    pub(super) certifier: Certifier,
    /// Tells the kinds of index apart.
    magic: [u8; 4],
    /// Drawn for the index, so that no zone of an earlier one is believed.
    pub(super) nonce: u64,
    /// Zones that the index leaves free for others.
    leave: u32,
    /// Zones of the chain, and whether one is being linked.
    zones: AtomicU32,
    linking: AtomicBool,
}

impl Chain {
    pub(super) fn new(space: Arc<Space>, magic: [u8; 4], nonce: u64, leave: u32) -> Chain {
        let certifier = Certifier::new(space.superblock().secret());
        let (zones, linking) = (AtomicU32::new(1), AtomicBool::new(false));
        Chain { region: space.region().clone(), space, certifier, magic, nonce, leave, zones, linking }
    }

    /// A chain that is new: with a nonce of its own.
    pub(super) fn create(space: Arc<Space>, magic: [u8; 4], leave: u32) -> Chain {
        let mut nonce = 0u64;
        space.region().entropy(nonce.as_mut_bytes());
        Chain::new(space, magic, nonce, leave)
    }

    /// Zones of the chain, and whether one is being linked; told without a lock.
    pub(super) fn growth(&self) -> (u32, bool) {
        (self.zones.load(Ordering::Relaxed), self.linking.load(Ordering::Relaxed))
    }

    /// Bytes that the index uses of a zone.
    pub(super) fn zone_size(&self) -> u64 {
        self.space.index_zone_size()
    }

    /// A zone, not yet committed; `None` if there is none for the index.
    pub(super) fn take_zone(&self) -> Result<Option<ZoneId>, SpaceError> {
        self.space.get_zone(None, self.leave)
    }

    /// The figures of an error: there is none.
    pub(super) fn shortage(&self) -> Shortage {
        self.space.shortage(self.space.zone_size(), self.leave)
    }

    /// The header of a zone, as bytes to write.
    pub(super) fn header(&self, zone: ZoneId, number: u32, shape: Shape, head: u64) -> [u8; HEADER as usize] {
        let mut header = ChainHeader {
            check: 0.into(),
            magic: self.magic,
            zone: zone.0.into(),
            nonce: self.nonce.into(),
            number: number.into(),
            shape,
            next: 0.into(),
            head: head.into(),
            reserved: [0; 16],
        };
        header.check.set(self.expected_check(&header));
        zerocopy::transmute!(header)
    }

    fn expected_check(&self, header: &ChainHeader) -> u64 {
        // Headers prove themselves without a life, like those of segments of the heap; the magic tells them apart.
        let body = &header.as_bytes()[size_of::<U64>()..NEXT as usize];
        self.certifier.check(self.certifier.life_key(0, 0), 0, body)
    }

    /// Lets `last` name a zone whose head has been written, makes both durable, and commits the zone.
    pub(super) fn link(&self, last: ZoneId, zone: ZoneId) {
        self.linking.store(true, Ordering::Relaxed);
        let link = self.space.zone_offset(last) + NEXT;
        self.region.store(link, u64::from(zone.0) + 1);
        // The fence covers the head as well; which of the two comes first makes no difference before the commit.
        self.region.persist(link, WORD);
        self.space.commit_zone(zone);
        self.zones.fetch_add(1, Ordering::Relaxed);
        self.linking.store(false, Ordering::Relaxed);
    }

    /// What the header of a committed zone says, if it proves that the zone has this number in the chain.
    pub(super) fn shape(&self, zone: ZoneId, number: u32) -> Result<Shape, SpaceError> {
        let offset = self.space.zone_offset(zone);
        let mut header = ChainHeader::new_zeroed();
        self.region.read_racing(offset, header.as_mut_bytes());
        let says = header.magic == self.magic && header.zone == zone.0;
        let is_ours = says && header.nonce == self.nonce && header.number == number;
        if is_ours && header.check.get() == self.expected_check(&header) {
            Ok(header.shape)
        } else {
            Err(SpaceError::Damaged { what: "the header of a zone of the index", offset })
        }
    }

    /// The zones from the first on; `None` if that is not committed.
    pub(super) fn follow(&self, first: ZoneId) -> Result<Option<Found>, SpaceError> {
        if !self.space.check_zone(first) {
            return Ok(None);
        }
        let mut zones = vec![Linked { zone: first, shape: self.shape(first, 0)? }];
        loop {
            let number = zones.len() as u32;
            self.zones.store(number, Ordering::Relaxed);
            let link = self.space.zone_offset(zones[zones.len() - 1].zone) + NEXT;
            let Some(next) = self.region.load(link).checked_sub(1) else {
                return Ok(Some(Found { zones, dangling: None }));
            };
            let damaged = SpaceError::Damaged { what: "the chain of the index's zones", offset: link };
            let Ok(next) = u32::try_from(next).map(ZoneId) else { return Err(damaged) };
            if self.space.checked_zone_offset(next).is_none() {
                return Err(damaged);
            }
            if !self.space.check_zone(next) {
                return Ok(Some(Found { zones, dangling: Some(link) }));
            }
            // The number of a zone in the chain is part of its header, so no chain returns to a zone.
            zones.push(Linked { zone: next, shape: self.shape(next, number)? });
        }
    }
}

/// The fields of a header in which an index says its shape like this, in names and sizes that add up to four bytes, and calls
/// the word that it may use by this name, if it uses it.
pub(super) fn header_fields(shape: &[(&'static str, usize)], head: Option<&'static str>) -> Fields {
    let (_, mut fields) = table!(ChainHeader: check, magic, zone, nonce, number, shape, next, head, reserved);
    fields.truncate(5);
    let mut offset = offset_of!(ChainHeader, shape);
    for (name, size) in shape {
        fields.push((*name, offset, *size));
        offset += size;
    }
    fields.push(("next", offset_of!(ChainHeader, next), 8));
    let unused = match head {
        Some(name) => {
            fields.push((name, offset_of!(ChainHeader, head), 8));
            offset_of!(ChainHeader, reserved)
        }
        None => offset_of!(ChainHeader, head),
    };
    fields.push(("reserved_b", unused, HEADER as usize - unused));
    fields
}

/// The fields of a root.
pub(super) fn root_fields() -> Fields {
    table!(IndexRoot: zone, reserved, nonce).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_its_bytes() {
        let root = IndexRoot::new(ZoneId(7), 0x0102_0304_0506_0708);
        assert_eq!(IndexRoot::from_bytes(root.to_bytes()), root);
        assert_eq!(root.to_bytes()[..4], [7, 0, 0, 0]);
        assert_eq!(root.to_bytes()[8..], [8, 7, 6, 5, 4, 3, 2, 1]);
    }
}
