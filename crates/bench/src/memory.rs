//! DRAM that a store takes, outside of its pool.
//!
//! Two witnesses. The counting allocator is exact, but blind to memory that a store maps for itself. The
//! growth of anonymous resident memory (`RssAnon`) sees that too, but also the allocator's slack. It has no
//! pools: mapped files are not anonymous, and pools in memory are resident before the store is created. The
//! count is the answer, unless much more became resident than was counted: then memory was taken past the
//! allocator, and the larger number is the truth.

use super::alloc;
use quipu::MediumKind;
use std::fs;

/// The DRAM taken at some moment.
#[derive(Clone, Copy)]
pub struct Memory {
    counted: Option<u64>,
    resident: Option<u64>,
}

/// Slack of the allocator, stacks and tables of the process that is not held against a store.
const TOLERATED: u64 = 4 << 20;

impl Memory {
    /// The DRAM taken now.
    pub fn now() -> Memory {
        Memory { counted: alloc::live_bytes(), resident: resident() }
    }

    /// The DRAM taken now, unless the medium is simulated: the simulator's images would pass for the store's
    /// memory.
    pub fn baseline(medium: MediumKind) -> Option<Memory> {
        (medium != MediumKind::Sim).then(Memory::now)
    }

    /// Bytes taken since `earlier`, or `None` if neither witness saw anything.
    pub fn since(self, earlier: Memory) -> Option<u64> {
        let (counted, resident) = self.witnesses_since(earlier);
        taken(counted, resident)
    }

    /// Bytes counted since `earlier`, and bytes that became resident.
    pub fn witnesses_since(self, earlier: Memory) -> (Option<u64>, Option<u64>) {
        let growth = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        (growth(self.counted, earlier.counted), growth(self.resident, earlier.resident))
    }
}

fn taken(counted: Option<u64>, resident: Option<u64>) -> Option<u64> {
    match (counted, resident) {
        (Some(counted), Some(resident)) if resident > counted + counted / 8 + TOLERATED => Some(resident),
        (Some(counted), _) => Some(counted),
        (None, resident) => resident,
    }
}

fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_holds_unless_memory_was_taken_past_it() {
        const GIB: u64 = 1 << 30;
        assert_eq!(taken(Some(GIB), Some(GIB + GIB / 10)), Some(GIB));
        assert_eq!(taken(Some(GIB), Some(GIB / 2)), Some(GIB));
        assert_eq!(taken(Some(1 << 20), Some(2 << 20)), Some(1 << 20), "slack of a small run");
        assert_eq!(taken(Some(1 << 20), Some(GIB)), Some(GIB), "a mapped table");
        assert_eq!(taken(None, Some(GIB)), Some(GIB));
        assert_eq!(taken(None, None), None);
    }

    #[test]
    fn resident_memory_grows_by_what_is_touched() {
        let before = Memory::now();
        // Far more than other tests of this process take meanwhile.
        let touched = std::hint::black_box(vec![1u8; 256 << 20]);
        let grown = Memory::now().since(before).unwrap();
        assert!((128 << 20..512 << 20).contains(&grown), "{grown}");
        drop(touched);
    }
}
