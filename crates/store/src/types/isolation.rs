//! [`Isolation`]: what transactions see of each other.

/// The view that a transaction has of others. At every level its writes take effect at once, all or none, and
/// it sees no write of a transaction that has not committed.
///
/// | level | reads show | keys that nobody else may write before its commit | anomalies |
/// |---|---|---|---|
/// | `ReadCommitted` | the newest state | those of `get_for_update` | lost updates, read skew |
/// | `Snapshot` | that of the beginning | also those that it writes | write skew |
/// | `Serializable` | that of the beginning | also all that it reads, and ranges | none |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each read shows the newest state, so two reads of one key may differ. Of two transactions that write a
    /// key the later commit counts, as with plain writes.
    ReadCommitted,
    /// All reads show the state of the beginning. Of two transactions at the same time that write one key,
    /// the first to commit succeeds.
    #[default]
    Snapshot,
    /// The result is one that the transactions could have had one after the other. Keys and ranges that were
    /// read count, also where they were empty.
    Serializable,
}
