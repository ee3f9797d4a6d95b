//! Creating an index, and finding it again after a crash: an open reads a line of every zone, and two chains.

use super::layout::{self, Kind, Usage};
use super::lock::Locking;
use super::settings::BucketSettings;
use super::slot::linked;
use super::table::BucketIndex;
use super::zones::Zones;
use crate::index::chain::{Chain, HEAD, HEADER_OF_ZONE, Linked, damaged};
use crate::index::words::{PmWords, Words};
use crate::index::{InPool, IndexError, IndexRoot};
use crate::space::{Space, SpaceError};
use quipu_medium::WORD;
use std::sync::Arc;

impl<L: Locking> InPool for BucketIndex<PmWords, L> {
    type Settings = BucketSettings;

    fn create(
        space: Arc<Space>,
        settings: BucketSettings,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<BucketIndex<PmWords, L>, IndexError> {
        let settings = settings.in_range();
        let words = PmWords::new(space.region().clone());
        let zones = Zones::new(words, Chain::create(space.clone(), L::MAGIC, leave), settings);
        let needed = settings.buckets.div_ceil(zones.per_zone());
        if u64::from(space.free_zones()) < needed + u64::from(leave) {
            return Err(zones.chain.full(needed));
        }
        let zone = zones.chain.take_zone()?;
        let state = space.zone_offset(zone) + HEAD;
        // Until the table has all its zones, it says that it has no buckets.
        let buckets = if needed == 1 { settings.buckets } else { 0 };
        zones.clear(zone);
        zones.write_header(zone, 0, Kind::Table, zones.seal.state(buckets, state));
        zones.words.fence();
        zones.chain.begin(zone, keep);
        zones.note(zone, Kind::Table, Usage::default());
        let index = BucketIndex::over(zones, settings.buckets, true);
        if buckets == 0 {
            index.complete()?;
        }
        Ok(index)
    }

    fn examine(
        space: Arc<Space>,
        root: IndexRoot,
        leave: u32,
    ) -> Result<BucketIndex<PmWords, L>, IndexError> {
        BucketIndex::examine_over(PmWords::new(space.region().clone()), space, root, leave)
    }

    fn repair(&self, begin: impl FnOnce()) -> Result<(), IndexError> {
        self.mend(begin)
    }
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    /// [`examine`](InPool::examine), through these words of the pool. For tests.
    ///
    /// # Errors
    /// As there.
    pub fn examine_over(
        words: W,
        space: Arc<Space>,
        root: IndexRoot,
        leave: u32,
    ) -> Result<BucketIndex<W, L>, IndexError> {
        let (chain, found) = Chain::examine(space, L::MAGIC, root, leave)?;
        let Some((Kind::Table, settings)) = layout::settings(found[0].shape) else {
            return Ok(damaged(HEADER_OF_ZONE, chain.space.zone_offset(root.zone()))?);
        };
        let zones = Zones::new(words, chain, settings);
        found.iter().try_for_each(|linked| note(&zones, linked))?;
        let state = zones.state_place();
        // A crash of the process alone may have left the word in a cache.
        zones.words.persist(state, WORD);
        let buckets = zones.seal.buckets(zones.words.load(state), state);
        let possible = |buckets: &u64| {
            let is_grown = settings.grow && (settings.buckets..=zones.capacity()).contains(buckets);
            is_grown || *buckets == 0 || *buckets == settings.buckets && *buckets <= zones.capacity()
        };
        let Some(buckets) = buckets.filter(possible) else {
            return Ok(damaged("the size of the table of the index", state)?);
        };
        let index = BucketIndex::over(zones, buckets.max(settings.buckets), false);
        if buckets != 0 {
            // Finds damage in the words that a repair will read.
            index.left_by_split()?;
            index.last_appended()?;
        }
        Ok(index)
    }

    /// The overflow bucket handed out last, if it may not be linked, and the slot of the link, if it is.
    fn last_appended(&self) -> Result<Option<LastAppended>, SpaceError> {
        let Some((owner, last)) = self.zones.last_appended() else { return Ok(None) };
        let mut link = None;
        self.each_slot::<false>(self.zones.place(owner)?, |slot, word| {
            link = link.or((linked(word) == Some(last)).then_some(slot));
        })?;
        Ok(Some((last, link)))
    }

    /// [`repair`](InPool::repair), through any words.
    ///
    /// # Errors
    /// As there.
    pub fn mend(&self, begin: impl FnOnce()) -> Result<(), IndexError> {
        let mut begin = Some(begin);
        let mut begin = || {
            if let Some(begin) = begin.take() {
                begin();
            }
        };
        self.zones.chain.repair(&mut begin);
        let state = self.zones.state_place();
        if self.words().load(state) == self.zones.seal.state(0, state) {
            begin();
            self.complete()?;
            return Ok(());
        }
        match self.last_appended()? {
            None => {}
            // If the process alone has died, it may be in a cache only. Once another bucket is handed out, no
            // repair asks for this one.
            Some((_, Some(link))) => self.words().persist(link, WORD),
            Some((last, None)) => {
                begin();
                self.zones.take_back(last);
            }
        }
        self.finish_split(&mut begin)?;
        if L::SLOTS != 0 {
            // This includes the buckets that the table will grow into: a split may have worked there, and no
            // other thread looks at them before.
            (0..self.zones.capacity()).try_for_each(|bucket| {
                L::clear(self.words(), self.zones.place(bucket)?, &mut begin);
                Ok::<_, SpaceError>(())
            })?;
        }
        Ok(())
    }

    /// Ends the creation of a table of more than one zone.
    fn complete(&self) -> Result<(), IndexError> {
        let buckets = self.zones.settings.buckets;
        self.zones.extend_table(buckets)?;
        let state = self.zones.state_place();
        self.words().store(state, self.zones.seal.state(buckets, state));
        self.words().persist(state, WORD);
        Ok(())
    }
}

/// Overflow zone and line of a bucket, and the slot that leads there.
type LastAppended = ((u64, u64), Option<u64>);

/// Notes a zone that was found, and the part of it that has been handed out.
fn note<W: Words, L: Locking>(
    zones: &Zones<W, L>,
    Linked { zone, shape }: &Linked,
) -> Result<(), SpaceError> {
    let head = zones.chain.space.zone_offset(*zone) + HEAD;
    let Some((kind, _)) = layout::settings(*shape).filter(|(_, said)| *said == zones.settings) else {
        return damaged(HEADER_OF_ZONE, head - HEAD);
    };
    let usage = match kind {
        Kind::Table => Some(Usage::default()),
        Kind::Overflow => zones.seal.used(zones.words.load(head), head),
    };
    match usage.filter(|usage| usage.buckets <= zones.per_zone()) {
        Some(usage) => zones.note(*zone, kind, usage),
        None => return damaged("what has been handed out of a zone of the index", head),
    }
    Ok(())
}
