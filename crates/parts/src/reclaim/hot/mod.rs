//! Which keys are hot: written so often that their records should lie apart from the others.
//!
//! Compaction copies what is live. If the records of keys that are written all the time have segments of their own, these
//! segments are nearly empty by the time they are cleaned, and the others change little. So who writes a record asks
//! whether its key is hot, and that must cost next to nothing: it comes before every write, and brings something only when a
//! segment is cleaned (PACMAN, Wang et al., USENIX ATC 2022, section 3.4).
//!
//! - [`KeySet`]: the hottest keys, read-only, two bytes a key, one line a question. An answer may be wrong, since it only
//!   decides where a record is placed.
//! - [`Current`]: the set that is asked now. Another takes its place without a lock on the side of who asks; the old one is
//!   freed when nobody can still look at it, by [`crate::epoch`].
//! - [`Sampler`]: a client's own. It counts how often the set says yes and, if told to, notes some of the keys.
//! - [`HotSet`]: what a store has one of. [`HotSet::tend`], called now and then by a thread in the background, goes through
//!   these phases:
//!   1. *Sampling*, at the beginning and after a shift: clients note keys until there are enough. The old set, if any, stays.
//!   2. *Deciding*: the keys noted are counted, and the set of the most frequent takes the place of the old one; or none
//!      does, if the load is uniform.
//!   3. *Watching* a set: its hits are held against what it promised. When they fall short, the hot keys have shifted: 1.
//!   4. *Resting* after a uniform load: nothing is hot and nothing noted. Each time it is found uniform again the rest is
//!      twice as long, up to sixteen times what sampling takes; then 1.
//!
//! # Where this goes beyond the paper
//!
//! Counts of samples are noisy. Of keys that are all written alike, the one that happened to be noted most often has
//! easily three times the count of the one noted least, which is the paper's test for a load that is not uniform; and a set
//! chosen by its counts has, on the samples that it was chosen from, more hits than it will ever have again. So each set is
//! put on trial first (`choose.rs`): chosen from one half of the samples, and held against the other half. What its hottest
//! keys and the coldest were written *there* is compared, and the hits *there* are what it promises. A shift is a hit
//! ratio below a share of that promise and not below a fixed number: a load with little skew would never reach such a
//! number, and be sampled for ever.
//!
//! Nothing here reads a clock or draws a random number: all is counted in writes.
//!
//! Thread safety: a [`HotSet`] is shared; a [`Sampler`] serves one thread at a time. Clients never wait.

mod choose;
mod current;
mod keys;
mod reports;
mod sampler;
mod set;
mod settings;

pub use current::Current;
pub use keys::KeySet;
pub use sampler::Sampler;
pub use set::{HotSet, HotSetStats};
pub use settings::HotSetSettings;
