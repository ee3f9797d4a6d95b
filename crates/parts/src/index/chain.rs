//! The zones of an index in PM: a chain of them, found again from a root of sixteen bytes.
//!
//! An index grows, so it takes zones and no object pool, which is laid out when the pool is created. Each of
//! its zones begins with the same header. The header proves that the zone belongs to this index and to this
//! place in the chain, and names the next zone. The index itself decides what fills its zones.
//!
//! # Order of persistence
//!
//! - *A further zone*: its header, the link of the last zone to it, fence; then the commit. A link to a zone
//!   that is not committed ends the chain, and the repair of the next open clears it. So no zone is committed
//!   without a link, and none leaks.
//! - *The first zone*: its header and its first contents, fence; the owner makes the root durable; the
//!   commit. A root whose zone is not committed names no index.
//!
//! No zone of the pool may be taken before the repair, since a link may name a free one.

use super::seam::IndexError;
use crate::record::Certifier;
use crate::space::{Space, SpaceError, ZoneId};
use crate::sync::SpinLock;
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
/// Offset of the word that the index may use in the first zone; the check does not cover it.
pub(super) const HEAD: u64 = offset_of!(ChainHeader, head) as u64;
/// Bytes of a header.
pub(super) const HEADER: u64 = size_of::<ChainHeader>() as u64;
/// The name of a header in reports of damage.
pub(super) const HEADER_OF_ZONE: &str = "the header of a zone of the index";
/// The index's own description of a zone, a byte each.
pub(super) type Shape = [u8; 4];

/// The header with which a zone of an index begins.
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

/// The owner of an index keeps this, durably, to find the index again.
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
    /// The first zone of the index.
    pub fn zone(&self) -> ZoneId {
        ZoneId(self.zone.get())
    }
}

/// A zone of an index that was found, by its place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) zone: ZoneId,
    pub(super) shape: Shape,
}

/// The zones of one index: takes, links and finds them.
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
    /// How many zones there are, and whether one is being linked: told without a lock.
    count: AtomicU32,
    linking: AtomicBool,
    /// The link at the end of the chain to a zone that was not committed.
    dangling: SpinLock<Option<u64>>,
}

impl Chain {
    fn new(space: Arc<Space>, magic: [u8; 4], nonce: u64, leave: u32) -> Chain {
        Chain {
            region: space.region().clone(),
            certifier: Certifier::new(space.superblock().secret()),
            space,
            magic,
            nonce,
            leave,
            count: AtomicU32::new(1),
            linking: AtomicBool::new(false),
            dangling: SpinLock::default(),
        }
    }

    /// A new chain: with a nonce of its own, and no zone yet.
    pub(super) fn create(space: Arc<Space>, magic: [u8; 4], leave: u32) -> Chain {
        let mut nonce = 0u64;
        space.region().entropy(nonce.as_mut_bytes());
        Chain::new(space, magic, nonce, leave)
    }

    /// The chain of a root, and its zones as they describe themselves. No byte is changed.
    pub(super) fn examine(
        space: Arc<Space>,
        magic: [u8; 4],
        root: IndexRoot,
        leave: u32,
    ) -> Result<(Chain, Vec<Linked>), IndexError> {
        let chain = Chain::new(space, magic, root.nonce.get(), leave);
        if !chain.space.check_zone(root.zone()) {
            return Err(IndexError::Absent);
        }
        let found = chain.follow(root.zone())?;
        chain.space.back_zones(found.iter().map(|linked| linked.zone))?;
        chain.count.store(found.len() as u32, Ordering::Relaxed);
        Ok((chain, found))
    }

    /// How many zones there are, and whether one is being linked; told without a lock.
    pub(super) fn growth(&self) -> (u32, bool) {
        (self.count.load(Ordering::Relaxed), self.linking.load(Ordering::Relaxed))
    }

    /// Bytes of the zones.
    pub(super) fn pm_bytes(&self) -> u64 {
        u64::from(self.growth().0) * self.space.zone_size()
    }

    /// Bytes that the index uses of a zone.
    pub(super) fn zone_size(&self) -> u64 {
        self.space.index_zone_size()
    }

    /// A zone, not yet committed.
    pub(super) fn take_zone(&self) -> Result<ZoneId, IndexError> {
        self.space.get_zone(None, self.leave)?.ok_or_else(|| self.full(1))
    }

    /// The error for so many zones that are wanted and not there.
    pub(super) fn full(&self, zones: u64) -> IndexError {
        IndexError::Full(self.space.shortage(zones * self.space.zone_size(), self.leave))
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
        // Headers prove themselves without a life, like those of heap segments; the magic tells them apart.
        let body = &header.as_bytes()[size_of::<U64>()..NEXT as usize];
        self.certifier.check(self.certifier.life_key(0, 0), 0, body)
    }

    /// Begins the chain with a zone whose contents are durable. `keep` makes the root durable.
    pub(super) fn begin(&self, zone: ZoneId, keep: impl FnOnce(IndexRoot)) {
        keep(IndexRoot { zone: zone.0.into(), reserved: [0; 4], nonce: self.nonce.into() });
        self.space.commit_zone(zone);
    }

    /// Adds a zone behind these, durably, and commits it; `write` writes its header for its place in the
    /// chain. The caller holds the lock of the zones.
    pub(super) fn link(&self, zones: &[ZoneId], zone: ZoneId, write: impl FnOnce(u32)) {
        let number = zones.len() as u32;
        write(number);
        self.linking.store(true, Ordering::Relaxed);
        let last = zones.last().expect("an index has a first zone");
        let link = self.space.zone_offset(*last) + NEXT;
        self.region.store(link, u64::from(zone.0) + 1);
        // The fence covers the header as well; their order makes no difference before the commit.
        self.region.persist(link, WORD);
        self.space.commit_zone(zone);
        self.count.store(number + 1, Ordering::Relaxed);
        self.linking.store(false, Ordering::Relaxed);
    }

    /// The link that a repair has to clear, told once.
    pub(super) fn take_dangling(&self) -> Option<u64> {
        self.dangling.lock().take()
    }

    /// Clears the link to a zone that was not committed, durably; `begin` is called before.
    pub(super) fn repair(&self, begin: impl FnOnce()) {
        let Some(link) = self.take_dangling() else { return };
        begin();
        self.region.store(link, 0);
        self.region.persist(link, WORD);
    }

    /// The shape of a committed zone, if its header proves that it has this number in the chain.
    fn shape(&self, zone: ZoneId, number: u32) -> Result<Shape, SpaceError> {
        let offset = self.space.zone_offset(zone);
        let mut header = ChainHeader::new_zeroed();
        self.region.read_racing(offset, header.as_mut_bytes());
        let says = header.magic == self.magic && header.zone == zone.0;
        let is_ours = says && header.nonce == self.nonce && header.number == number;
        if is_ours && header.check.get() == self.expected_check(&header) {
            Ok(header.shape)
        } else {
            damaged(HEADER_OF_ZONE, offset)
        }
    }

    /// The zones from the first one on, which is committed.
    fn follow(&self, first: ZoneId) -> Result<Vec<Linked>, SpaceError> {
        let mut zones = vec![Linked { zone: first, shape: self.shape(first, 0)? }];
        loop {
            let link = self.space.zone_offset(zones[zones.len() - 1].zone) + NEXT;
            let Some(next) = self.region.load(link).checked_sub(1) else { return Ok(zones) };
            let next = u32::try_from(next).map(ZoneId).ok();
            let Some(next) = next.filter(|next| self.space.checked_zone_offset(*next).is_some()) else {
                return damaged("the chain of the index's zones", link);
            };
            if !self.space.check_zone(next) {
                *self.dangling.lock() = Some(link);
                return Ok(zones);
            }
            // The number of a zone in the chain is part of its header, so no chain returns to a zone.
            zones.push(Linked { zone: next, shape: self.shape(next, zones.len() as u32)? });
        }
    }
}

/// Something in PM that no run of an index leaves there.
#[cold]
pub(super) fn damaged<T>(what: &'static str, offset: u64) -> Result<T, SpaceError> {
    Err(SpaceError::Damaged { what, offset })
}

/// The fields of a header, for an index that divides its shape into these fields and calls its own word by
/// this name.
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
        let root = IndexRoot { zone: 7.into(), reserved: [0; 4], nonce: 0x0102_0304_0506_0708.into() };
        assert_eq!(root.zone(), ZoneId(7));
        assert_eq!(root.as_bytes(), [7, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
    }
}
