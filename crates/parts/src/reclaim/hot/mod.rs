//! Which keys are hot: written so often that their records should lie apart from the others.
//!
//! Compaction copies live records. If the records of hot keys have segments of their own, these are nearly
//! empty when they are cleaned, and the others change little. So each writer asks whether its key is hot. The
//! question comes before every write and only pays when a segment is cleaned, so it must cost next to nothing
//! (PACMAN, Wang et al., USENIX ATC 2022, section 3.4).
//!
//! - `KeySet`: the hottest keys, read-only, two bytes a key, one cache line a question. An answer may be
//!   wrong, since it only decides where a record is placed.
//! - The set in use is in a [`Current`](crate::epoch::Current). A new set replaces it without a lock on the
//!   readers' side; [`crate::epoch`] frees the old one when no reader can still see it.
//! - [`Sampler`]: one for each client. It counts how often the set says yes and, when told to, samples keys.
//! - [`HotSet`]: one for each store. A background thread calls [`HotSet::tend`] now and then. Its phases:
//!   1. *Sampling*, at the beginning and after a shift: clients sample keys until there are enough; an old
//!      set stays.
//!   2. *Deciding*: the samples are counted, and the set of the most frequent keys replaces the old one, or
//!      none does if the load is uniform.
//!   3. *Watching* a set: its hits are compared with the expected ones. If they fall short, the hot keys have
//!      shifted: 1.
//!   4. *Resting* after a uniform load: no key is hot and none is sampled. Each time the load is uniform
//!      again, the rest doubles, up to sixteen times the length of sampling; then 1.
//!
//! # Beyond the paper
//!
//! Counts of samples are noisy. Of equally hot keys, the most sampled one easily has three times the count of
//! the least sampled one, and that is the paper's test for a load that is not uniform. A set also hits more
//! on the samples that it was chosen from than ever after. So each set is first put on trial (`choose.rs`):
//! it is chosen from one half of the samples and judged by the other half. The trial compares how often the
//! hottest and the coldest keys were written there, and its hits there are the expected ones. A shift is a
//! hit ratio below a share of the expected one. Below a fixed ratio, as in the paper, a load with little skew
//! would be sampled for ever.
//!
//! Nothing here reads a clock or draws a random number: all is counted in writes.
//!
//! Thread safety: a [`HotSet`] is shared; a [`Sampler`] serves one thread at a time. Clients never wait.

mod choose;
mod keys;
mod reports;
mod sampler;
mod set;
mod settings;

pub use sampler::Sampler;
pub use set::{HotSet, HotSetStats};
pub use settings::HotSetSettings;
