//! [`PmNodes`]: allocating segments in zones, and the words of those in use.

use super::layout::{self, Carving, NAMES};
use crate::index::IndexError;
use crate::index::cceh::entry::{EMPTY, Name};
use crate::index::cceh::memory::NodeMemory;
use crate::index::cceh::settings::CcehSettings;
use crate::index::chain::Chain;
use crate::index::directory::DEPTH_MAX;
use crate::record::LifeKey;
use crate::space::ZoneId;
use crate::sync::SpinLock;
use crate::twin;
use quipu_medium::{Region, WORD};
use std::collections::BTreeSet;

/// Where the check stands in the word of a name, whose other bits are those of [`Name::word`].
const CHECK_SHIFT: u32 = 8;
const CHECK_MASK: u64 = 0xFFFF << CHECK_SHIFT;

/// A name leaves these bits free.
const _: () = assert!(DEPTH_MAX + CHECK_SHIFT + CHECK_MASK.count_ones() <= u64::BITS);

/// Memory of an index in PM.
pub struct PmNodes {
    pub(super) chain: Chain,
    pub(super) region: Region,
    /// The index's part in the checks of its names.
    pub(super) key: LifeKey,
    pub(super) settings: CcehSettings,
    pub(super) carving: Carving,
    pub(super) zones: SpinLock<Zones>,
    /// Segments that are free when [`repair`](NodeMemory::repair) has cleared their names.
    pub(super) orphans: SpinLock<Vec<Named>>,
}

/// A segment as its zone names it.
pub(super) struct Named {
    pub(super) name: Name,
    pub(super) place: u64,
    /// Where the name stands.
    pub(super) named: u64,
}

/// The zones of the index.
#[derive(Default)]
pub(super) struct Zones {
    /// In the order of the chain.
    pub(super) chain: Vec<ZoneId>,
    /// First byte of each zone, to find the name of a segment.
    pub(super) starts: BTreeSet<u64>,
    /// Segments without a name, durably, the next one last.
    pub(super) free: Vec<u64>,
}

impl PmNodes {
    /// The word that names a segment, at this place.
    fn name_word(&self, name: Name, place: u64) -> u64 {
        let check = self.chain.certifier.check(self.key, place, &name.word().to_le_bytes());
        name.word() | check << CHECK_SHIFT & CHECK_MASK
    }

    /// The name that the word at this place says, if it proves itself.
    pub(super) fn name_of(&self, word: u64, place: u64) -> Option<Name> {
        Name::from_word(word & !CHECK_MASK).filter(|name| self.name_word(*name, place) == word)
    }

    /// Writes header and names of a zone, not yet durable. A fence follows.
    pub(super) fn write_head(&self, zone: ZoneId, number: u32, names: impl Iterator<Item = Name>) {
        let start = self.chain.space.zone_offset(zone);
        let mut head = self.chain.header(zone, number, layout::shape(self.settings), 0).to_vec();
        for name in names {
            let word = self.name_word(name, start + head.len() as u64);
            head.extend(word.to_le_bytes());
        }
        head.resize(self.carving.first as usize, 0);
        self.region.write_nt(start, &head);
    }

    /// Writes a segment that nobody can find, not yet durable. A fence follows.
    pub(super) fn write_words(&self, segment: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.region.write_nt(segment, &bytes);
    }

    /// Notes a zone with the segments in it that are free.
    pub(super) fn note(&self, zones: &mut Zones, zone: ZoneId, is_free: impl Fn(u64) -> bool) {
        let start = self.chain.space.zone_offset(zone);
        zones.chain.push(zone);
        zones.starts.insert(start);
        let free = (0..self.carving.segments).rev().filter(|segment| is_free(*segment));
        let places = free.map(|segment| start + self.carving.first + segment * self.carving.segment);
        // Those that were free before are used first.
        zones.free.splice(0..0, places);
    }

    /// Where the name of a segment stands.
    fn name_place(&self, zones: &Zones, segment: u64) -> u64 {
        let start = zones.starts.range(..segment).next_back().expect("the segment is in a zone of ours");
        start + NAMES + (segment - start - self.carving.first) / self.carving.segment * WORD
    }

    /// Takes another zone: durably linked when this returns, and committed.
    fn extend(&self, zones: &mut Zones) -> Result<(), IndexError> {
        let zone = self.chain.take_zone()?;
        self.chain.link(&zones.chain, zone, |number| self.write_head(zone, number, std::iter::empty()));
        self.note(zones, zone, |_| true);
        Ok(())
    }
}

impl NodeMemory for PmNodes {
    const MARK: u64 = 1;

    #[inline]
    fn load(&self, place: u64) -> u64 {
        self.region.load(place)
    }

    #[inline]
    fn store(&self, place: u64, word: u64) {
        self.region.store(place, word);
    }

    #[inline]
    fn flush(&self, place: u64, len: u64) {
        self.region.flush(place, len);
    }

    #[inline]
    fn fence(&self) {
        self.region.fence();
    }

    fn help(&self, place: u64, len: u64) {
        if !twin!(ReadersDoNotHelp) {
            self.persist(place, len);
        }
    }

    #[inline]
    fn prefetch(&self, place: u64) {
        self.region.prefetch(place);
    }

    #[inline]
    fn prefetch_to_write(&self, place: u64) {
        self.region.prefetch(place);
    }

    fn allocate(&self, name: Name, words: &[u64]) -> Result<u64, IndexError> {
        let (segment, named) = {
            let mut zones = self.zones.lock();
            if zones.free.is_empty() {
                self.extend(&mut zones)?;
            }
            let segment = zones.free.pop().expect("a zone has room for a segment");
            (segment, self.name_place(&zones, segment))
        };
        self.write_words(segment, words);
        self.region.store(named, self.name_word(name, named));
        // Its fence covers the words as well.
        self.region.persist(named, WORD);
        Ok(segment)
    }

    fn narrow(&self, segment: u64, name: Name) {
        let named = self.name_place(&self.zones.lock(), segment);
        self.region.store(named, self.name_word(name, named));
        self.region.persist(named, WORD);
    }

    fn make_room(&self, segments: usize) -> Result<(), IndexError> {
        let mut zones = self.zones.lock();
        while zones.free.len() < segments {
            self.extend(&mut zones)?;
        }
        Ok(())
    }

    fn repair(&self, begin: impl FnOnce()) {
        let orphans = std::mem::take(&mut *self.orphans.lock());
        let link = self.chain.take_dangling();
        let words: Vec<u64> = link.into_iter().chain(orphans.iter().map(|orphan| orphan.named)).collect();
        if words.is_empty() {
            return;
        }
        begin();
        for word in words {
            self.region.store(word, EMPTY);
            self.region.flush(word, WORD);
        }
        self.region.fence();
        self.zones.lock().free.extend(orphans.iter().map(|orphan| orphan.place));
    }

    fn zones(&self) -> Vec<ZoneId> {
        self.zones.lock().chain.clone()
    }

    fn chained(&self) -> (u32, bool) {
        self.chain.growth()
    }

    fn dram_bytes(&self) -> u64 {
        let zones = self.zones.lock();
        let words = zones.free.capacity() + zones.starts.len();
        words as u64 * WORD + size_of_val(&zones.chain[..]) as u64
    }

    fn pm_bytes(&self) -> u64 {
        self.chain.pm_bytes()
    }
}
