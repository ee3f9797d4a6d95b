//! PACMAN's techniques on Viper's heap (Wang et al., USENIX ATC 2022, section 4.1), for records of any size:
//! records are let go and moved in other ways than Viper's. [`SlotTechniques`](super::SlotTechniques) selects
//! them.
//!
//! | step | paper | file |
//! |---|---|---|
//! | dead records are known in DRAM, and deletions are tombstones | 3.2 | `dead` |
//! | victims by cost and benefit; clearing marks for tombstones | 2.1 | `scrub`, [`choose`](super::choose) |
//! | records of a block move under one fence | 3.3 | `batch` |
//! | lengths in the words of the index | 3.2 | [`SizedOffset`](super::SizedOffset) |
//! | hot records in blocks of their own | 3.4 | [`Owner`](super::Owner) |

mod batch;
mod dead;
mod scrub;

pub use batch::{Batch, Collected, Victim};
pub(super) use dead::Dead;
pub(super) use scrub::Horizon;
