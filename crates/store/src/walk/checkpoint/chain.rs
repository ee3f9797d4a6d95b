//! A chain of free zones that holds one long piece of bytes, and proves itself.

use super::head::{HEAD, ZoneHead, chain_check, checkpoint_key, zone_check};
use crate::background;
use quipu_parts::record::{Certifier, LifeKey};
use quipu_parts::space::{CheckpointEntry, Space, ZoneId};
use zerocopy::{FromBytes, IntoBytes};

/// Writes a chain, a zone at a time.
pub(crate) struct Writer<'a> {
    space: &'a Space,
    certifier: &'a Certifier,
    key: LifeKey,
    run: u64,
    zones: Vec<ZoneId>,
    /// The zone that is being filled, with room for its head.
    buffer: Vec<u8>,
    checks: Vec<u64>,
    len: u64,
}

impl<'a> Writer<'a> {
    /// Begins a chain for so many bytes; `None` if there are not enough free zones, or no storage behind
    /// them.
    pub(crate) fn new(space: &'a Space, certifier: &'a Certifier, len: u64) -> Option<Writer<'a>> {
        let (room, run) = (space.zone_size() - HEAD as u64, space.superblock().run.get());
        let zones = space.spare_zones(len.div_ceil(room)).ok().flatten()?;
        let (key, buffer) = (checkpoint_key(certifier, run), vec![0; HEAD]);
        Some(Writer { space, certifier, key, run, zones, buffer, checks: Vec::new(), len: 0 })
    }

    /// Appends bytes, in total at most as many as the chain was made for.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.space.zone_size() as usize - self.buffer.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.buffer.extend_from_slice(now);
            if now.len() == room {
                self.end_zone();
            }
            bytes = later;
        }
    }

    /// Writes the zone that is being filled. Durable with the next fence.
    fn end_zone(&mut self) {
        let number = self.checks.len();
        let zone = self.zones[number];
        let len = (self.buffer.len() - HEAD) as u64;
        let head = ZoneHead::new(self.run, zone, self.zones.get(number + 1).copied(), len);
        self.buffer[..HEAD].copy_from_slice(head.as_bytes());
        let check = zone_check(self.certifier, self.key, number, &self.buffer);
        self.buffer[..size_of_val(&check)].copy_from_slice(&check.to_le_bytes());
        self.space.region().write_nt(self.space.zone_offset(zone), &self.buffer);
        self.checks.push(check);
        self.len += len;
        self.buffer.truncate(HEAD);
    }

    /// Ends the chain, durably, and names it.
    pub(crate) fn finish(mut self) -> CheckpointEntry {
        if self.buffer.len() > HEAD {
            self.end_zone();
        }
        self.space.region().fence();
        let mut entry = CheckpointEntry::default();
        entry.run.set(self.run);
        entry.len.set(self.len);
        entry.check.set(chain_check(self.certifier, self.key, self.checks.into_iter()));
        entry.first_zone.set(self.zones.first().map_or(0, |zone| zone.0));
        entry
    }
}

/// A chain that proved itself.
pub(crate) struct Chain<'a> {
    /// The contents of each zone, all but the last of the same length.
    contents: Vec<&'a [u8]>,
    room: usize,
}

impl<'a> Chain<'a> {
    /// Reads and proves the chain of this name; `None` if any part of it does not prove itself.
    pub(crate) fn read(
        space: &'a Space,
        certifier: &Certifier,
        entry: &CheckpointEntry,
        threads: usize,
    ) -> Option<Chain<'a>> {
        let zone_size = space.zone_size();
        let (run, room) = (entry.run.get(), zone_size - HEAD as u64);
        let mut zones = Vec::new();
        let mut next = Some(ZoneId(entry.first_zone.get()));
        let mut left = entry.len.get();
        // The chain is no longer than the free zones, so that a circle ends too.
        if left.div_ceil(room) > u64::from(space.free_zones()) {
            return None;
        }
        while left > 0 {
            let zone = next?;
            // A zone in use belongs to no checkpoint.
            let start = space.checked_zone_offset(zone).filter(|_| space.is_free(zone))?;
            let len = left.min(room);
            // SAFETY: the store is being opened, so nobody writes, least of all to a zone that is free.
            let bytes = unsafe { space.region().bytes(start, HEAD as u64 + len) }?;
            let (head, _) = ZoneHead::read_from_prefix(bytes).ok()?;
            if !head.is_of(run, zone) || head.len() != len {
                return None;
            }
            zones.push((head, bytes));
            (next, left) = (head.next(), left - len);
        }
        let key = checkpoint_key(certifier, run);
        let named = chain_check(certifier, key, zones.iter().map(|(head, _)| head.check()));
        let sound = next.is_none() && named == entry.check.get();
        let proves = |number: usize| {
            let (head, bytes) = &zones[number];
            head.check() == zone_check(certifier, key, number, bytes)
        };
        (sound && background::all(threads, zones.len(), proves)).then(|| Chain {
            contents: zones.into_iter().map(|(_, bytes)| &bytes[HEAD..]).collect(),
            room: room as usize,
        })
    }

    /// Bytes of the contents.
    pub(crate) fn len(&self) -> u64 {
        self.contents.iter().map(|contents| contents.len() as u64).sum()
    }

    /// The pieces, one of each zone, that make up a range; fewer bytes if the contents end before it does.
    pub(crate) fn pieces(&self, from: u64, len: u64) -> impl Iterator<Item = &'a [u8]> {
        let (mut at, mut left) = (from as usize, len as usize);
        std::iter::from_fn(move || {
            let contents = *self.contents.get(at / self.room)?;
            let piece = contents.get(at % self.room..)?;
            let piece = &piece[..piece.len().min(left)];
            at += piece.len();
            left -= piece.len();
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// A range, copied; `None` if the contents end before it does.
    pub(crate) fn copy(&self, from: u64, len: u64) -> Option<Vec<u8>> {
        if from.checked_add(len)? > self.len() {
            return None;
        }
        Some(self.pieces(from, len).collect::<Vec<_>>().concat())
    }
}
