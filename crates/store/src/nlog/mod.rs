//! The walk over files of a node: the path of NStore (sections III-C to III-G of the paper;
//! [`quipu_parts::heap::nlog`] has the files).
//!
//! A write locks the stripe of its key and asks the index for the old record, which is the parent of the new
//! one. It takes a **place** at the tail of its cluster on its node, makes the record **persist** with one
//! fence, **publishes** it in the index, and leaves the place. The file cannot be sealed before that, so no
//! cleaner meets a record that is not published yet.
//!
//! Other writes share the file meanwhile: the tail is locked only while the place is given away. Nothing of
//! the old record is written, whichever node it is on.
//!
//! Reads are those of [`crate::points`]. No write waits for another one to be published.

mod build;
mod check;
mod clean;
mod cleaners;
mod client;
mod engine;
mod pace;
mod recovery;
mod trace;
mod write;

pub(crate) use build::{capabilities, open};

use crate::points::{Core, Points};
use cleaners::Cleaning;
use quipu_medium::Node;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Participant;
use quipu_parts::heap::Numbers;
use quipu_parts::heap::nlog::{Files, Nlog};
use quipu_parts::heap::segments::{LogHeap, Shard};
use quipu_parts::index::Index;
use quipu_parts::record::Encoder;
use std::ops::Deref;

/// The parts of one open store.
pub(crate) struct NlogSpine<I: Index> {
    core: Core<I>,
    files: Files,
    cleaning: Cleaning,
}

/// A client's own.
pub(crate) struct NlogSession {
    participant: Participant,
    writer: Writer,
}

/// A client's means of writing.
struct Writer {
    /// The number of its node.
    node: u32,
    encoder: Encoder,
    numbers: Numbers,
    shard: Shard,
}

impl<I: Index> Deref for NlogSpine<I> {
    type Target = Core<I>;

    #[inline(always)]
    fn deref(&self) -> &Core<I> {
        &self.core
    }
}

impl<I: Index> Points for NlogSpine<I> {
    type Index = I;

    #[inline(always)]
    fn core(&self) -> &Core<I> {
        &self.core
    }
}

impl Writer {
    fn new(heap: &LogHeap, node: u32) -> Writer {
        Writer { node, encoder: Encoder::default(), numbers: Numbers::default(), shard: heap.shard() }
    }
}

impl<I: Index> NlogSpine<I> {
    #[inline(always)]
    fn nlog(&self) -> Nlog<'_> {
        self.files.of(&self.core.heap)
    }

    fn own_session(&self, node: Option<Node>) -> NlogSession {
        let node = node.or_else(|| self.heap.space().node_here());
        let writer = Writer::new(&self.heap, self.nlog().number_of(node));
        NlogSession { participant: self.common.epochs.register(), writer }
    }

    /// Locks the stripe of this number.
    #[inline]
    fn lock(&self, stripe: usize) -> StripeGuard<'_> {
        self.common.stripes.lock(stripe, |_| unreachable!("no write of this walk is published late"))
    }
}
