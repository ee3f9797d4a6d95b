//! Regions of several files: one range of offsets, each file its own bytes, and one statement.

use quipu_medium::{Durability, MediumError, MediumKind, Node, Region, Span, Topology};
use std::fs;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;

struct Files(tempfile::TempDir);

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn create(&self, name: &str, len: u64) -> Region {
        let durability = Durability::Process;
        Region::create_unnamed(self.path(name), len, Some(MediumKind::File), durability).unwrap()
    }

    fn open(&self, name: &str) -> Region {
        Region::open(self.path(name), Some(MediumKind::File), Durability::Process).unwrap()
    }
}

fn files() -> Files {
    Files(tempfile::tempdir().unwrap())
}

fn two_nodes() -> Topology {
    "0:0-63;1:64-127@10,21/21,10".parse().unwrap()
}

#[test]
fn parts_are_one_region_and_each_file_has_its_bytes() {
    let files = files();
    let parts =
        vec![files.create("a", 2 * MIB).placed_on(Node(0)), files.create("b", MIB).placed_on(Node(1))];
    let region = Region::join(parts, &two_nodes()).unwrap();
    assert!(fs::read_dir(files.0.path()).unwrap().next().is_none(), "no name before it is given");
    assert_eq!(region.len(), 3 * MIB);
    let span = |node, start, len| Span { node: Some(Node(node)), start, len };
    assert_eq!(region.spans(), [span(0, 0, 2 * MIB), span(1, 2 * MIB, MIB)]);
    assert_eq!((region.current_node(), region.distance(Node(0), Node(1))), (Some(Node(0)), 21));

    // Over the boundary, with storage, and written back.
    let at = 2 * MIB - 4096;
    region.reserve(at, 8192).unwrap();
    region.prefault(at, 8192).unwrap();
    region.write(at + 4090, b"boundaries");
    region.write_back(at, 8192).unwrap();
    assert!(region.has_data(2 * MIB, 4096));
    region.give_name().unwrap();
    drop(region);
    let bytes =
        |name, from: u64, len: usize| fs::read(files.path(name)).unwrap()[from as usize..][..len].to_vec();
    assert_eq!((bytes("a", 2 * MIB - 6, 6), bytes("b", 0, 4)), (b"bounda".to_vec(), b"ries".to_vec()));

    let again = Region::join(vec![files.open("a"), files.open("b")], &two_nodes()).unwrap();
    let mut read = [0; 10];
    again.read_racing(2 * MIB - 6, &mut read);
    assert_eq!(&read, b"boundaries");
    assert_eq!(again.current_node(), None, "nobody has told a node, so all bytes count as near");
    let both = [files.path("a"), files.path("b")];
    assert_eq!(again.mapping().paths().collect::<Vec<_>>(), both);
    for path in both {
        let in_use = Region::open(path, None, Durability::Process).unwrap_err();
        assert!(matches!(in_use, MediumError::InUse { .. }), "{in_use}");
    }
    // The storage of a hole goes back to its own file, whose end ends its last unit.
    assert_eq!(again.discard(2 * MIB, MIB).unwrap(), MIB);
    assert!(again.has_data(2 * MIB - 4096, 8192) && !again.has_data(2 * MIB, MIB));
    again.sync().unwrap();
    again.read_racing(2 * MIB - 6, &mut read);
    assert_eq!(&read, b"bounda\0\0\0\0");
    drop(again);
    files.open("a");
}

#[test]
fn a_file_that_is_dropped_unnamed_leaves_nothing_and_a_longer_one_is_cut() {
    let files = files();
    let parts = vec![files.create("a", 2 * MIB), files.create("b", 2 * MIB)];
    drop(Region::join(parts, &two_nodes()).unwrap());
    assert!(fs::read_dir(files.0.path()).unwrap().next().is_none());

    files.create("c", 3 * MIB).give_name().unwrap();
    files.create("d", 2 * MIB).give_name().unwrap();
    let cut = files.open("c").cut(2 * MIB).unwrap();
    cut.store(2 * MIB - 8, 7);
    let region = Region::join(vec![cut, files.open("d")], &two_nodes()).unwrap();
    assert_eq!((region.len(), region.load(2 * MIB - 8), region.load(2 * MIB)), (4 * MIB, 7, 0));
    drop(region);
    let error = files.open("d").cut(3 * MIB).unwrap_err().to_string();
    assert!(error.contains("/d ") && error.contains("restore the whole part"), "{error}");
}

#[test]
fn parts_that_do_not_fit_are_refused_by_name() {
    let files = files();
    let odd = vec![files.create("odd", MIB), files.create("b", MIB)];
    let error = Region::join(odd, &two_nodes()).unwrap_err().to_string();
    assert!(error.contains("/odd ") && error.contains("2097152"), "{error}");
    if let Ok(memory) = tempfile::tempdir_in("/dev/shm") {
        let path = memory.path().join("memory");
        let memory = Region::create_unnamed(&path, MIB, Some(MediumKind::Dram), Durability::Process).unwrap();
        let error =
            Region::join(vec![files.create("a", 2 * MIB), memory], &two_nodes()).unwrap_err().to_string();
        assert!(error.contains("memory") && error.contains("medium dram"), "{error}");
    }
}
