//! [`Isolation`]: what transactions see of each other.

/// What a transaction sees of others. Whatever the level, its writes take effect at once, all or none, and it
/// sees no write of a transaction that has not committed.
///
/// | level | reads show | a commit fails if somebody has since written | what can still go wrong |
/// |---|---|---|---|
/// | `ReadCommitted` | the newest state, each anew | a key read by `get_for_update` | lost updates, different answers to one question |
/// | `Snapshot` | the state of the beginning | a key that it writes, or has read by `get_for_update` | write skew |
/// | `Serializable` | the state of the beginning | also any key that it has read, and any range | nothing |
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
