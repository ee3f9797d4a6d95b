//! Group commit: of clients whose items meet, one writes all as one item (*batching*, section 3.2.2).
//!
//! A client joins a bucket. If nobody leads it, the client does; else it queues, and waits until it is told
//! to lead or that its item has been written. A leader takes those that queued while another leader wrote. It
//! hands the lead to the next in the queue *before* it enters the ring. So a bucket pipelines, and groups
//! grow by themselves with the load.
//!
//! If there is no room for a group, nothing of it is written, and each of its clients tries alone. So a full
//! pool refuses only the items that do not fit. A ring that is poisoned refuses them all.

use super::item::{Item, Written};
use super::log::ChainLog;
use super::memtable::Supply;
use super::walk::ChainError;
use crate::commit::ring::Place;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Padded, SpinLock, Waiter, point};
use std::collections::VecDeque;
use std::sync::Arc;

/// How clients meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Buckets.
    pub buckets: usize,
    /// Records at which a group takes no further item.
    pub records: u64,
    /// Bytes at which it takes none.
    pub bytes: u64,
    /// Turns that a leader waits for more items.
    pub linger: u32,
}

/// The buckets of a log.
pub struct Groups {
    buckets: Box<[Padded<SpinLock<Bucket>>]>,
    settings: GroupSettings,
}

#[derive(Default)]
struct Bucket {
    is_led: bool,
    queue: VecDeque<Arc<Request>>,
}

/// A client's item, for a leader.
#[derive(Default)]
struct Request {
    state: AtomicU32,
    content: SpinLock<Content>,
}

#[derive(Default)]
struct Content {
    item: Item,
    /// The last number of the group that it was written with.
    written: Option<u64>,
}

const QUEUED: u32 = 0;
const LEADS: u32 = 1;
const ENDED: u32 = 2;

/// A client of a log.
pub struct GroupClient {
    own: Arc<Request>,
    /// Those that it writes with its own, if it leads.
    taken: Vec<Arc<Request>>,
    /// The item of all of them.
    together: Item,
    bucket: usize,
}

impl GroupClient {
    /// Fills the item that is written next.
    pub fn fill(&mut self, fill: impl FnOnce(&mut Item)) {
        let mut content = self.own.content.lock();
        content.item.clear();
        fill(&mut content.item);
    }
}

impl Groups {
    /// Buckets with these settings.
    pub fn new(settings: GroupSettings) -> Groups {
        let buckets = (0..settings.buckets.max(1)).map(|_| Padded::default()).collect();
        Groups { buckets, settings }
    }

    /// A client, by its number.
    pub fn client(&self, number: usize) -> GroupClient {
        let bucket = number % self.buckets.len();
        GroupClient { own: Arc::default(), taken: Vec::new(), together: Item::default(), bucket }
    }

    /// Writes the item that the client has filled, alone or with others, as [`ChainLog::commit`] does. The
    /// item is empty then.
    /// `granted` and `publish` are called for all of its group, or not at all.
    ///
    /// # Errors
    /// As for [`ChainLog::commit`].
    pub fn commit(
        &self,
        log: &ChainLog,
        client: &mut GroupClient,
        supply: Supply,
        granted: impl Fn(&Place),
        publish: impl Fn(&Written<'_>),
    ) -> Result<u64, ChainError> {
        let GroupClient { own, taken, together, bucket } = client;
        let bucket = &self.buckets[*bucket].0;
        if !self.leads(bucket, own) {
            let mut content = own.content.lock();
            let written = content.written.take();
            return written.map_or_else(|| log.commit(&mut content.item, supply, &granted, &publish), Ok);
        }
        let mut content = own.content.lock();
        self.gather(bucket, &content.item, taken);
        if taken.is_empty() {
            return log.commit(&mut content.item, supply, granted, publish);
        }
        let group = Taken(taken);
        together.clear();
        together.append(&content.item);
        group.append_to(together);
        match log.commit(together, supply, &granted, &publish) {
            Ok(last) => {
                content.item.clear();
                group.end(last);
                Ok(last)
            }
            Err(_) => {
                drop(group);
                log.commit(&mut content.item, supply, granted, publish)
            }
        }
    }

    /// Joins a bucket, and tells whether the client is to lead; else its item has been written, or could not
    /// be.
    fn leads(&self, bucket: &SpinLock<Bucket>, own: &Arc<Request>) -> bool {
        {
            let mut bucket = bucket.lock();
            if !bucket.is_led {
                bucket.is_led = true;
                return true;
            }
            own.state.store(QUEUED, Ordering::Relaxed);
            bucket.queue.push_back(own.clone());
        }
        let mut waiter = Waiter::default();
        loop {
            match own.state.load(Ordering::Acquire) {
                QUEUED => {
                    point();
                    waiter.wait();
                }
                state => return state == LEADS,
            }
        }
    }

    /// Takes others of the queue to an item, and hands on the lead.
    fn gather(&self, bucket: &SpinLock<Bucket>, own: &Item, taken: &mut Vec<Arc<Request>>) {
        let mut waiter = Waiter::default();
        (0..self.settings.linger).for_each(|_| waiter.wait());
        let (mut records, mut bytes) = (own.records(), own.len());
        let mut bucket = bucket.lock();
        while records < self.settings.records && bytes < self.settings.bytes {
            let Some(next) = bucket.queue.pop_front() else { break };
            {
                let content = next.content.lock();
                records += content.item.records();
                bytes += content.item.len();
            }
            taken.push(next);
        }
        match bucket.queue.pop_front() {
            Some(next) => next.state.store(LEADS, Ordering::Release),
            None => bucket.is_led = false,
        }
    }
}

/// Clients that wait for their leader. If it drops, they try alone.
struct Taken<'t>(&'t mut Vec<Arc<Request>>);

impl Taken<'_> {
    fn append_to(&self, item: &mut Item) {
        self.0.iter().for_each(|request| item.append(&request.content.lock().item));
    }

    /// They have been written.
    fn end(self, last: u64) {
        for request in &*self.0 {
            let mut content = request.content.lock();
            content.item.clear();
            content.written = Some(last);
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|request| request.state.store(ENDED, Ordering::Release));
    }
}
