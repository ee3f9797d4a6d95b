//! The disk is full before the pool is: an error, not a fault, and work goes on when there is room again.

use super::victim::options;
use quipu::internals::NodePlace;
use quipu::{Design, Error, ErrorKind, Options, Store};
use quipu_lab::contract::{Contents, value_of, verify};
use quipu_medium::sim::SimOptions;
use quipu_medium::{MediumError, Region};
use std::path::Path;
use std::process::Command;

/// Puts until that fails, and tells how.
fn put_until_it_fails(store: &Store, contents: &mut Contents, at_most: usize) -> Option<Error> {
    let mut client = store.client();
    for number in contents.len()..contents.len() + at_most {
        let key = number.to_le_bytes();
        let value = value_of(&key, 0, 700);
        if let Err(error) = client.put(&key, &value) {
            return Some(error);
        }
        contents.insert(key.to_vec(), value);
    }
    None
}

#[track_caller]
fn disk_full(error: Option<Error>) {
    let is_full = matches!(&error, Some(Error::Medium(MediumError::DiskFull { .. })));
    assert!(is_full, "{error:?}");
    assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Room));
}

fn on_the_simulator(design: Design, nodes: NodePlace) {
    let region = Region::sim(SimOptions { len: 2 << 20, ..SimOptions::default() });
    let sim = region.simulator().unwrap().clone();
    let mut options = Options::new().design(design).zone_size(16 << 10);
    options.offset_map.nodes = nodes;
    let mut store = Store::create_on(region.clone(), &options).unwrap();
    let mut contents = Contents::new();
    for _ in 0..3 {
        assert!(put_until_it_fails(&store, &mut contents, 100).is_none());
        sim.fail_reserve_after(2);
        disk_full(put_until_it_fails(&store, &mut contents, 1000));
        disk_full(put_until_it_fails(&store, &mut contents, 1000));
        verify(&mut store, &contents);
        sim.fail_reserve_after(u64::MAX);
    }
    sim.fail_reserve_after(0);
    drop(store);
    let mut store = Store::open_on(region, &options).unwrap();
    verify(&mut store, &contents);
    if design == Design::VIPER {
        // A deletion is a mark and takes no room; in a log it is a record.
        let key = contents.keys().next().unwrap().clone();
        store.client().delete(&key).unwrap();
        contents.remove(&key);
        verify(&mut store, &contents);
    }
    sim.fail_reserve_after(u64::MAX);
    assert!(put_until_it_fails(&store, &mut contents, 200).is_none());
    verify(&mut store, &contents);
}

#[test]
fn under_a_log() {
    on_the_simulator(Design::QUIPU, NodePlace::Dram);
    on_the_simulator(Design::NSTORE, NodePlace::Dram);
}

#[test]
fn under_slots() {
    on_the_simulator(Design::VIPER, NodePlace::Dram);
    on_the_simulator(Design::VIPER, NodePlace::Pm);
    on_the_simulator(Design::VIPER_PACMAN, NodePlace::Dram);
}

/// A small file system, unmounted when dropped.
struct SmallDisk<'a>(&'a Path);

/// A kind of file system, and how much of it other files take.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Of this size.
    Tmpfs(&'static str),
    /// In a file, with blocks of so many bytes.
    Ext4(&'static str),
}

impl<'a> SmallDisk<'a> {
    fn mount(kind: Kind, image: &Path, folder: &'a Path) -> Option<SmallDisk<'a>> {
        let succeeds = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let mut mount = Command::new("mount");
        let mounted = match kind {
            Kind::Tmpfs(size) => succeeds(mount.args(["-t", "tmpfs", "-o", size, "tmpfs"]).arg(folder)),
            Kind::Ext4(block) => {
                std::fs::File::create(image).unwrap().set_len(24 << 20).unwrap();
                succeeds(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0", "-b", block]).arg(image))
                    && succeeds(mount.args(["-o", "loop"]).arg(image).arg(folder))
            }
        };
        mounted.then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).output();
    }
}

const DESIGNS: [(Design, NodePlace); 6] = [
    (Design::QUIPU, NodePlace::Dram),
    (Design::NSTORE, NodePlace::Dram),
    (Design::XP, NodePlace::Dram),
    (Design::VIPER, NodePlace::Dram),
    (Design::VIPER, NodePlace::Pm),
    (Design::VIPER_PACMAN, NodePlace::Dram),
];

#[test]
fn on_a_small_file_system() {
    DESIGNS.into_iter().for_each(|(design, nodes)| {
        // `xp` keeps storage for a memtable.
        let size = if design == Design::XP { "size=4m" } else { "size=2m" };
        on_a_small_file_system_of(design, nodes, Kind::Tmpfs(size));
    });
}

/// The system keeps what was read in order in large pages, and a store to one needs room for all of it.
#[test]
fn on_a_small_disk_where_others_read_the_pool() {
    for (block, designs) in [("1024", &DESIGNS[..1]), ("4096", &DESIGNS)] {
        designs.iter().for_each(|(design, nodes)| {
            on_a_small_file_system_of(*design, *nodes, Kind::Ext4(block));
        });
    }
}

/// Reads the pool as a copy of it would, with nothing of it in the cache.
fn read_by_others(path: &Path) {
    // Dirty pages would stay.
    let _ = Command::new("sync").arg("-f").arg(path).output();
    let _ = std::fs::write("/proc/sys/vm/drop_caches", "1");
    std::fs::read(path).unwrap();
}

#[track_caller]
fn on_a_small_file_system_of(design: Design, nodes: NodePlace, kind: Kind) {
    let (folder, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(_disk) = SmallDisk::mount(kind, &beside.path().join("image"), folder.path()) else {
        println!("skipped: mounting a small file system needs root");
        return;
    };
    let filler = folder.path().join("filler");
    let (len, records) = match kind {
        Kind::Tmpfs(_) => (1 << 20, 500),
        Kind::Ext4(_) => (6 << 20, 3000),
    };
    std::fs::write(&filler, vec![1; len]).unwrap();
    let path = folder.path().join("pool");
    // Many more zones than are asked for storage before a put is refused. `xp` keeps storage for a memtable,
    // which is a part of the pool.
    let size = if design == Design::XP { 32 << 20 } else { 128 << 20 };
    let mut options = options().design(design).size(size).zone_size(64 << 10);
    options.offset_map.nodes = nodes;
    let mut store = Store::create(&path, &options).unwrap();
    let mut contents = Contents::new();
    disk_full(put_until_it_fails(&store, &mut contents, 100_000));
    assert!(contents.len() > records, "there was room for {}", contents.len());
    verify(&mut store, &contents);
    drop(store);
    read_by_others(&path);
    let mut store = Store::open(&path, &options).unwrap();
    verify(&mut store, &contents);
    // Deletions and compaction go on, and so do puts of what they make room for.
    let victims: Vec<_> = contents.keys().step_by(2).cloned().collect();
    // Where cleaning reads from a disk, clients of `xp` may use up what is kept for a rewriting.
    let clients = if design == Design::XP && matches!(kind, Kind::Ext4(_)) { 1 } else { 3 };
    std::thread::scope(|scope| {
        for keys in victims.chunks(victims.len().div_ceil(clients)) {
            let mut client = store.client();
            scope.spawn(move || {
                for key in keys {
                    client.delete(key).unwrap_or_else(|error| panic!("{design}: {error}"));
                }
            });
        }
    });
    contents.retain(|key, _| !victims.contains(key));
    store.compact().unwrap_or_else(|error| panic!("{design}, compact: {error}"));
    verify(&mut store, &contents);
    let refused = put_until_it_fails(&store, &mut contents, 50);
    assert!(refused.is_none(), "{refused:?}");
    // So do many at once.
    let many: Vec<_> = victims.iter().take(40).map(|key| (key, [7; 900])).collect();
    store.client().put_many(&many).unwrap_or_else(|error| panic!("{design}, many puts: {error}"));
    contents.extend(many.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    verify(&mut store, &contents);
    std::fs::remove_file(filler).unwrap();
    assert!(put_until_it_fails(&store, &mut contents, 400).is_none());
    verify(&mut store, &contents);
    store.close().unwrap();
    verify(&mut Store::open(&path, &options).unwrap(), &contents);
}
