//! The real program, run as people and scripts run it.

#[path = "cli/damage.rs"]
mod damage;
#[path = "cli/disk.rs"]
mod disk;
#[path = "cli/documents.rs"]
mod documents;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/forms.rs"]
mod forms;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/leftovers.rs"]
mod leftovers;
#[path = "cli/measuring.rs"]
mod measuring;
#[path = "cli/pools.rs"]
mod pools;
#[path = "cli/proving.rs"]
mod proving;
#[path = "cli/reading.rs"]
mod reading;
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/scripts.rs"]
mod scripts;
#[path = "cli/support.rs"]
mod support;
