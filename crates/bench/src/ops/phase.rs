//! The phases that can be measured after the inserts.

/// A phase of `ops` after the inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpsPhase {
    /// One record, copied out.
    Get,
    /// The same, where each key is made between two calls and not ahead of them.
    GetInLoop,
    /// Batches of 32.
    GetMany,
    /// From a record on, 100 in the order of keys, where the design has one. A scan counts as so many
    /// operations of other phases.
    Scan,
    /// The same of 1 to 100 records, as in YCSB's workload E.
    ScanSome,
    /// A whole new value over the old one, which is not looked at.
    Update,
    /// The same, where each key and each value is made between two calls and not ahead of them.
    UpdateInLoop,
    /// The old value is read, and a whole new one put in its place.
    ReadModifyWrite,
    /// Eight bytes of the value, where the design can do that.
    UpdateInPlace,
    /// Blind deletes, which do not tell whether there was something to delete: of half of the records that
    /// go.
    Delete,
    /// Deletes that do: of the rest.
    Remove,
}

impl OpsPhase {
    /// The phases unless others are asked for.
    pub const DEFAULT: [OpsPhase; 10] = [
        OpsPhase::Get,
        OpsPhase::GetInLoop,
        OpsPhase::GetMany,
        OpsPhase::Scan,
        OpsPhase::ScanSome,
        OpsPhase::Update,
        OpsPhase::UpdateInLoop,
        OpsPhase::UpdateInPlace,
        OpsPhase::Delete,
        OpsPhase::Remove,
    ];

    /// Whether it puts a whole value for each operation.
    pub(super) fn rewrites(self) -> bool {
        matches!(self, OpsPhase::Update | OpsPhase::UpdateInLoop | OpsPhase::ReadModifyWrite)
    }
}
