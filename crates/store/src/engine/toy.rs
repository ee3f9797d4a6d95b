//! A walk unlike all others, to show what the seam requires: versions in DRAM, no epochs.

use super::{Decide, Decision, Engine, InPlace, Pinned, Session};
use crate::api::store::Store;
use crate::background::{Job, Progress, Steps};
use crate::designs::{Capabilities, Description, Design, Recipe};
use crate::engine::common::Common;
use crate::engine::site::Opened;
use crate::options::Options;
use crate::types::change::{Entry, Expiry};
use crate::types::error::Error;
use crate::types::iter::Pair;
use crate::types::reports::CheckReport;
use crate::types::stats::Stats;
use quipu_medium::Node;
use quipu_parts::heap::Clock;
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const TOY: Design = Design(u32::MAX);

pub(crate) const RECIPE: Recipe = Recipe {
    design: TOY,
    description: Description { name: "toy", paper: "", parts: &[], can: Capabilities::NONE },
    settings: &[],
    object_pools: |_| Vec::new(),
    remember: |_, _| [0; _],
    recall: |_, _| Ok(()),
    open: |site| {
        let (common, clock, folder) = (Common::of(&site), site.clock(), site.folder);
        let (log, worked) = Default::default();
        let engine = Arc::new(Toy { common, clock, folder, log, worked });
        Ok(Opened { engine, recovery: Default::default() })
    },
};

/// A key with its value, or with none where it was deleted.
type Version = (Vec<u8>, Option<Vec<u8>>);

struct Toy {
    common: Common,
    clock: Clock,
    folder: Option<PathBuf>,
    /// A version's number is its position.
    log: Mutex<Vec<Version>>,
    /// How often each job has worked.
    worked: [AtomicU64; 2],
}

struct ToySession {
    toy: Arc<Toy>,
    /// The number of writes of the client.
    writes: u64,
}

impl Toy {
    /// The version of a key before this number, and its value.
    fn at(&self, key: &[u8], end: u64) -> Option<(u64, Vec<u8>)> {
        let log = self.log.lock().unwrap();
        let (at, (_, value)) = log.iter().enumerate().take(end as usize).rfind(|(_, (own, _))| own == key)?;
        value.clone().map(|value| (at as u64, value))
    }

    fn keys_at(&self, end: u64) -> impl Iterator<Item = Vec<u8>> {
        let keys: BTreeSet<_> = self.log.lock().unwrap().iter().map(|(key, _)| key.clone()).collect();
        keys.into_iter().filter(move |key| self.at(key, end).is_some())
    }
}

impl Engine for Toy {
    fn session(self: Arc<Self>, _node: Option<Node>) -> InPlace {
        smallbox::smallbox!(ToySession { toy: self, writes: 0 })
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn jobs(self: Arc<Self>) -> Vec<Job> {
        let job = |name, toy: Arc<Toy>, i: usize| {
            let step = move || {
                toy.worked[i].fetch_add(1, Relaxed);
                Progress::Enough
            };
            Job { name, steps: Steps::Brief, bell: Arc::default(), step: Box::new(step) }
        };
        vec![job("toy-dumps", self.clone(), 0), job("toy-merges", self, 1)]
    }

    fn limits(&self) -> (u64, u64) {
        (1 << 10, 1 << 20)
    }

    fn stats(&self) -> Stats {
        Stats { records: self.keys_at(u64::MAX).count() as u64, ..Stats::default() }
    }

    fn check(&self, _progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error> {
        Err(Error::Unsupported { what: "checks" })
    }
}

impl Session for ToySession {
    fn engine(&self) -> &dyn Engine {
        &*self.toy
    }

    fn modify(&mut self, key: &[u8], decide: &mut dyn Decide) -> Result<(), Error> {
        self.toy.common.admission.admit()?;
        let old = self.toy.at(key, u64::MAX);
        let old = old.as_ref().map(|(at, value)| Entry { value, expiry: Expiry::Never, version: Some(*at) });
        let new = match decide.decide(old) {
            Decision::Keep => return Ok(()),
            Decision::Delete => None,
            Decision::Put(value, _) => Some(value.to_vec()),
        };
        self.toy.log.lock().unwrap().push((key.to_vec(), new));
        self.writes += 1;
        Ok(())
    }

    fn pin(&self) -> Pinned<'_> {
        Pinned::at(self.toy.log.lock().unwrap().len() as u64)
    }

    fn get<'g>(&'g self, pinned: &'g Pinned<'_>, key: &[u8]) -> Result<Option<Cow<'g, [u8]>>, Error> {
        Ok(self.toy.at(key, pinned.at.number).map(|(_, value)| value.into()))
    }

    fn pairs<'g>(&'g self, pinned: &'g Pinned<'g>) -> Result<Box<dyn Iterator<Item = Pair<'g>> + 'g>, Error> {
        let at = pinned.at.number;
        let pair = move |key: Vec<u8>| self.toy.at(&key, at).map(|(_, value)| Ok((key.into(), value.into())));
        Ok(Box::new(self.toy.keys_at(at).filter_map(pair)))
    }
}

#[test]
fn a_walk_like_no_other_fits_the_seam() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().design(TOY).size(1 << 20).cleaner(true);
    let store = Store::create(folder.path().join("pool"), &options).unwrap();
    let (mut client, mut other) = (store.client(), store.client());
    client.put_many(&[("knot", "1"), ("cord", "2")]).unwrap();
    let before = client.pin();
    other.update(b"knot", |old| old.map(|old| [old, b"!"].concat())).unwrap();
    assert!(other.remove(b"cord").unwrap() && !other.contains_key(b"cord").unwrap());
    // The guard looks up to its number.
    assert_eq!(before.get(b"knot").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!((before.iter().count(), other.pin().keys().count()), (2, 1));
    assert!(matches!(other.put_until(b"knot", b"3", 1), Err(Error::Unsupported { .. })));
    // State that only this walk has.
    let session: &dyn Any = other.session();
    let own = session.downcast_ref::<ToySession>().unwrap();
    assert_eq!((own.writes, own.toy.folder.as_deref()), (2, Some(&*folder.path().join("pool.runs"))));
    while own.toy.worked.iter().any(|worked| worked.load(Relaxed) == 0) {
        std::thread::yield_now();
    }
}
