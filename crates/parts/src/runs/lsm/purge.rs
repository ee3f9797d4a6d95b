//! Our purge as a filter of the library's compactions.
//!
//! The library asks for a filter once in each compaction, where the inputs are fixed and under two of its
//! locks, and then shows it every entry. Of its verdicts, only `Destroy` takes an entry away; another one
//! would leave a tombstone of the library that no filter sees again. A panic in here would hide the inputs
//! for good and poison a lock, so it becomes an error.

use super::entry::{self, DATA, Fault, RANGE};
use super::files;
use crate::record::Kind;
use crate::runs::filter::{Filter, Verdict};
use crate::runs::{Head, Notice, Purge, RunsError};
use crate::sync::SpinLock;
use lsm_tree::compaction::filter::Context;
use lsm_tree::compaction::{self, CompactionFilter, ItemAccessor};
use lsm_tree::{Error, UserValue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// The word between a compaction and the filter that the library makes for it.
#[derive(Default)]
pub(super) struct Slot {
    /// For the next filter.
    pub purge: Option<Purge>,
    /// To be asked by it before it takes anything away.
    pub notice: Option<Notice>,
    /// A fault that a filter has met.
    pub fault: Option<Fault>,
    /// The answer for which it has given up.
    pub refused: Option<RunsError>,
}

/// Makes the filters of a tree.
pub(super) struct Factory {
    pub slot: AssertUnwindSafe<Arc<SpinLock<Slot>>>,
    /// The folder of the files.
    pub tables: PathBuf,
}

struct Judge {
    filter: Filter,
    slot: Arc<SpinLock<Slot>>,
    /// Until it is asked.
    notice: Option<Notice>,
    tables: PathBuf,
    /// Room for a value.
    scratch: Vec<u8>,
}

impl compaction::Factory for Factory {
    fn name(&self) -> &str {
        "quipu"
    }

    fn make_filter(&self, context: &Context) -> Box<dyn CompactionFilter> {
        // Without a list of the records that may go, only repetitions do.
        let (purge, notice) = {
            let mut slot = self.slot.lock();
            (slot.purge.take().unwrap_or_default(), slot.notice.take())
        };
        let filter = Filter::new(purge, context.is_last_level);
        let (slot, tables) = (Arc::clone(&self.slot), self.tables.clone());
        Box::new(Judge { filter, slot, notice, tables, scratch: Vec::new() })
    }
}

impl CompactionFilter for Judge {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<compaction::Verdict> {
        // No lock is held here, and each compaction has an entry.
        if let Some(Err(refused)) = self.notice.take().map(|notice| notice()) {
            self.slot.lock().refused = Some(refused);
            return Err(Error::Unrecoverable);
        }
        let value = item.value()?;
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(item.key(), value)));
        judged.unwrap_or(Err("a purge that did not end")).map_err(|fault| {
            self.slot.lock().fault = Some(fault);
            Error::Unrecoverable
        })
    }

    /// No lock is held here. The library syncs this file again, under a lock that every publication takes.
    fn finish(self: Box<Self>) {
        files::sync_newest(&self.tables);
    }
}

impl Judge {
    fn judge(&mut self, key: &[u8], value: UserValue) -> Result<compaction::Verdict, Fault> {
        let verdict = match key {
            [DATA, key @ ..] => {
                let (head, _) = entry::decode(&value)?;
                let verdict = self.filter.record(key, &head);
                if verdict == Verdict::Bury {
                    let buried = Head { kind: Kind::Tombstone, expires: 0, ..head };
                    entry::encode(&buried, &[], &mut self.scratch);
                }
                verdict
            }
            [RANGE, ..] => match self.filter.keeps_range(entry::decode_range(&value)?.number) {
                true => Verdict::Keep,
                false => Verdict::Drop,
            },
            _ => return Err("a key without its prefix"),
        };
        Ok(match verdict {
            Verdict::Keep => compaction::Verdict::Keep,
            Verdict::Drop => compaction::Verdict::Destroy,
            Verdict::Bury => compaction::Verdict::ReplaceValue(self.scratch.as_slice().into()),
        })
    }
}
