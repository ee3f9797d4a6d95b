//! Putting a store of files together.

use super::NlogSpine;
use super::cleaners::{self, Cleaning};
use super::recovery;
use crate::engine::NO_SALVAGE;
use crate::engine::common::{Common, STRIPES};
use crate::engine::site::{How, Opened, Site};
use crate::points::checkpoint;
use crate::points::{self, Core, Readers};
use crate::settings::files::{CLUSTERS_MAX, EntryForm, FileSettings};
use crate::types::design::Capabilities;
use crate::types::error::Error;
use crate::types::reports::RecoveryReport;
use quipu_parts::heap::Reference;
use quipu_parts::heap::nlog::{Files, NlogSettings};
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::index::{BothWays, Imaged};
use quipu_parts::record::Certifier;
use std::sync::Arc;

/// Share of the zones, as a divisor, that puts leave to deletes and to cleaning.
const RESERVE_DIVISOR: u32 = 50;

const _: () = assert!(CLUSTERS_MAX as usize <= STRIPES);

/// Bytes of a zone at least, unless another size is asked for.
const LEAST_ZONE: u64 = 64 << 10;

/// The capabilities of a store of files with this index.
pub(crate) const fn capabilities<I: Imaged + BothWays>() -> Capabilities {
    Capabilities {
        ordered: true,
        expiry: true,
        common_files: true,
        caches: true,
        reads_near: true,
        versions: true,
        lends: true,
        pools_below: Reference::reach(I::WORD_BITS),
        least_zone: LEAST_ZONE,
        checkpoints: true,
        ..Capabilities::NONE
    }
}

/// Opens a store whose index is empty, in a pool with entries of this form.
pub(crate) fn open<I: Imaged + BothWays>(
    site: Site<'_>,
    index: I,
    entry: EntryForm,
) -> Result<Opened, Error> {
    let mut spine = Arc::new(spine(&site, index, entry));
    let (believed, threads) = (site.believes_checkpoints(), site.options.recovery_threads);
    let recovery = match site.how {
        How::Unrecovered => return Err(Error::Unsupported { what: NO_SALVAGE }),
        How::New => {
            let zones = site.space.zone_count();
            if zones < reserve_of(zones) + 1 {
                return Err(Error::no_room_in(&site.space));
            }
            RecoveryReport::default()
        }
        How::Existing(pool) => {
            let loaded = if believed { checkpoint::load(&spine.core, threads) } else { None };
            match loaded {
                Some(loaded) => {
                    let spine = Arc::get_mut(&mut spine).expect("nobody else has it yet");
                    recovery::resume(spine, loaded, pool.found.clone())?
                }
                None => recovery::recover(&*spine, threads, pool)?,
            }
        }
    };
    Ok(Opened { engine: spine, recovery })
}

fn spine<I: Imaged + BothWays>(site: &Site<'_>, index: I, entry: EntryForm) -> NlogSpine<I> {
    let (space, options, testing) = (&site.space, site.options, &site.options.testing);
    let mut certifier = Certifier::new(space.superblock().secret());
    let FileSettings { clusters, gc_threshold, cleaners, .. } = options.files;
    if entry == EntryForm::OpLast {
        certifier = certifier.of_headers_alone();
    }
    let (zones, nodes) = (space.zone_count(), space.nodes().len() as u32);
    let cleaners = testing.compactors.unwrap_or_else(|| cleaners::fitted(cleaners, zones, nodes));
    let heap = LogHeap::new(space.clone(), certifier, site.clock(), reserve_of(zones));
    let settings = NlogSettings { clusters }.fitted(zones, nodes);
    let files = Files::new(&heap, settings);
    let common = Common::of(site);
    NlogSpine {
        cleaning: Cleaning::new(
            files.of(&heap),
            &heap,
            &common,
            (cleaners, gc_threshold),
            site.options.wait_for_room,
        ),
        files,
        core: Core {
            heap,
            index,
            common,
            sizes_in_words: true,
            verifies: options.verify_reads,
            cache: points::cache_of(site, true),
            readers: Readers::of(space, options.readers),
            in_order: Some(points::range_of::<I>),
        },
    }
}

/// Zones that puts leave free, of so many: one for cleaning, the others for deletes.
fn reserve_of(zones: u32) -> u32 {
    (zones / RESERVE_DIVISOR).max(2)
}
