//! Holders that keep things from reuse: this thread, for others to name.

use quipu_medium::Region;
use quipu_parts::epoch::{Holder, What};

/// This thread, from now on.
#[inline]
pub(crate) fn here(region: &Region, what: What) -> Holder {
    Holder { what, thread: region.thread_number(), since: region.coarse_ticks() }
}

/// Whether this thread itself keeps a guard or a transaction: then waiting for it is in vain. A snapshot may
/// be dropped by another thread than the one that took it.
pub(crate) fn is_own(region: &Region, holder: Option<Holder>) -> bool {
    holder.is_some_and(|holder| holder.what != What::Snapshot && holder.thread == region.thread_number())
}
