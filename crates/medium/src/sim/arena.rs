//! Booting simulated regions from crash images, thousands a second.
//!
//! An explorer reopens the store once for each crash image. Mapping and filling a megabyte each time would
//! cost more than recovering from it, so regions are recycled. A region whose last user is gone is set back
//! in two steps: the lines that are still dirty are undone, and the pages whose durable version differs are
//! copied. Images of neighbouring crash points share most pages.

use super::image::Image;
use super::options::SimOptions;
use super::page::word_hash;
use super::random::mix;
use super::simulator::{Boot, Sim};
use super::snapshot::Snapshot;
use crate::region::Region;
use std::sync::Arc;

/// Boots regions and keeps them for reuse.
#[derive(Default)]
pub struct SimArena {
    sims: Vec<Arc<Sim>>,
}

impl SimArena {
    /// An empty arena.
    pub fn new() -> SimArena {
        SimArena::default()
    }

    /// The machine after a power failure that left `image`: both images of the region hold it and nothing is
    /// pending. The boot id is a new one; it and the region's entropy follow from `seed`.
    pub fn boot(&mut self, snapshot: &Snapshot, image: &Image, seed: u64) -> Region {
        let sim = self.recycle(snapshot, |memory| {
            for (word, value) in image.changes() {
                memory.plant(*word, *value);
            }
            debug_assert_eq!(memory.durable.hash, image.hash(), "the image is of this snapshot");
        });
        let before = snapshot.boot_id.iter().fold(0, |hash, byte| word_hash(hash, u64::from(*byte) + 1));
        *sim.boot.hold() = Boot::new(mix(seed ^ before));
        Sim::region(&sim)
    }

    /// The machine after the process died and nothing else: all visible words still are, and all pending
    /// words still are. But the dead threads' flushes will never meet their fences. Words that they wrote
    /// past the caches have arrived: entering the kernel drains the processor's write-combining buffers, and
    /// a dead process has done so. The boot id stays.
    pub fn boot_process_crash(&mut self, snapshot: &Snapshot, seed: u64) -> Region {
        let sim = self.recycle(snapshot, |memory| {
            for (line, range) in &snapshot.lines {
                memory.adopt(*line, &snapshot.events[range.clone()]);
            }
            memory.order = snapshot.order;
            memory.owners = snapshot.owners;
        });
        *sim.boot.hold() = Boot { id: snapshot.boot_id, ..Boot::new(mix(seed)) };
        Sim::region(&sim)
    }

    /// A region of the snapshot's shape that no one uses, with its durable image, prepared further by
    /// `prepare`.
    fn recycle(&mut self, snapshot: &Snapshot, prepare: impl FnOnce(&mut super::memory::Memory)) -> Arc<Sim> {
        let shape = |options: SimOptions| SimOptions { seed: 0, ..options };
        let idle = self
            .sims
            .iter_mut()
            .position(|sim| shape(sim.options()) == shape(snapshot.options) && Arc::get_mut(sim).is_some());
        let index = idle.unwrap_or_else(|| {
            self.sims.push(Arc::new(Sim::new(snapshot.options)));
            self.sims.len() - 1
        });
        let sim = Arc::get_mut(&mut self.sims[index]).expect("idle, and the arena is held exclusively");
        sim.revive();
        let memory = sim.memory.get_mut();
        memory.reset(&snapshot.durable);
        prepare(memory);
        Arc::clone(&self.sims[index])
    }
}
