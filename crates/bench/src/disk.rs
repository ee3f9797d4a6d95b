//! Bytes that this process reads from disks and writes to them, by the kernel's count.
//!
//! Linux counts for a process, with all of its threads, all that it fetches from the storage layer: reads
//! that the page cache answers, and file systems in memory, do not count. Writes count when a page becomes
//! dirty, so a page that is written twice before it reaches the disk counts once. Elsewhere, and where the
//! kernel keeps no such account, there is no count.

use std::fs;
use std::ops::Sub;

/// Counts, or a difference of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskBytes {
    /// Bytes fetched from disks.
    pub read: u64,
    /// Bytes sent to disks.
    pub written: u64,
}

impl DiskBytes {
    /// The counts now.
    pub fn now() -> Option<DiskBytes> {
        DiskBytes::parse(&fs::read_to_string("/proc/self/io").ok()?)
    }

    fn parse(account: &str) -> Option<DiskBytes> {
        let of = |name: &str| {
            let line = account.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().parse().ok()
        };
        Some(DiskBytes { read: of("read_bytes")?, written: of("write_bytes")? })
    }
}

impl Sub for DiskBytes {
    type Output = DiskBytes;

    fn sub(self, earlier: DiskBytes) -> DiskBytes {
        DiskBytes { read: self.read - earlier.read, written: self.written - earlier.written }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_account_is_read_by_its_names() {
        let account = "rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 7\n";
        let found = DiskBytes::parse(account).unwrap();
        assert_eq!(found, DiskBytes { read: 4096, written: 8192 });
        assert_eq!(found - DiskBytes { read: 96, written: 192 }, DiskBytes { read: 4000, written: 8000 });
        assert_eq!(DiskBytes::parse("rchar: 9\n"), None);
    }

    #[test]
    fn bytes_written_to_a_disk_are_counted() {
        const BYTES: usize = 1 << 20;
        let Some(before) = DiskBytes::now() else { return };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; BYTES]).unwrap();
        file.sync_all().unwrap();
        let written = (DiskBytes::now().unwrap() - before).written;
        // The folder of temporary files may be in memory.
        assert!(written == 0 || written >= BYTES as u64, "{written}");
    }
}
