use super::*;
use crate::heap::Numbers;
use crate::heap::segments::test_heap;
use crate::heap::segments::{FIRST_RECORD, HIGH_WATER, HeapError, LogHeap, Use};
use crate::record::{Content, Encoder};
use crate::space::ZoneId;
use crate::twin::{Twin, inherited, leave_out};
use quipu_medium::{Durability, MediumKind, Region};

/// Files in a pool of their own, for as long as the process lives.
fn nlog() -> Nlog<'static> {
    nlog_of(test_heap::heap())
}

fn nlog_of(heap: LogHeap) -> Nlog<'static> {
    let heap = Box::leak(Box::new(heap));
    let settings = NlogSettings { clusters: 256 }.fitted(heap.space().zone_count(), 1);
    Box::leak(Box::new(Files::new(heap, settings))).of(heap)
}

/// A writer of one key after the other.
#[derive(Default)]
struct Writer {
    encoder: Encoder,
    numbers: Numbers,
    newest: u64,
}

impl Writer {
    /// Writes at a place, and leaves it to the caller to publish.
    fn write(&mut self, spot: &Spot<'_>, content: Content<'_>) -> u64 {
        self.newest = spot.draw_above(&mut self.numbers, self.newest);
        assert!(spot.write(&mut self.encoder, &content, self.newest).is_none());
        self.newest
    }

    fn put(&mut self, nlog: Nlog<'_>, stripe: usize, key: &[u8], value: &[u8], parent: u64) -> Entry {
        let content = Content::value(key, value).after(parent);
        let place = nlog.reserve(nlog.home(0, stripe), content.record_len(), Use::Put).expect("room");
        self.write(&place, content);
        nlog.heap.region().fence();
        let reference = place.reference();
        place.published();
        let zone = reference.zone(nlog.heap.zone_shift());
        items(nlog, zone)
            .into_iter()
            .find_map(|item| item.1.filter(|entry| entry.reference == reference))
            .unwrap()
    }
}

/// The items of a file: their kinds and lengths, and the entries.
fn items(nlog: Nlog<'_>, zone: ZoneId) -> Vec<((char, u64), Option<Entry>)> {
    // SAFETY: nobody writes.
    let info = unsafe { nlog.file_info(zone) }.expect("a file");
    let mut bytes = Vec::new();
    nlog.copy_of(&info, &mut bytes);
    let mut scan = nlog.scan(&info, &bytes, 0..u64::MAX);
    let mut items = Vec::new();
    while let Some(item) = scan.advance().expect("known kinds") {
        items.push(match item {
            Item::Record(entry, record) => (('r', taken(record.header.record_len())), Some(entry)),
            Item::Void { len, .. } => (('v', len), None),
            Item::Hole { len, .. } => (('h', len), None),
        });
    }
    items
}

fn kinds(nlog: Nlog<'_>, zone: ZoneId) -> Vec<(char, u64)> {
    items(nlog, zone).into_iter().map(|(kind, _)| kind).collect()
}

fn zone_of(nlog: Nlog<'_>, spot: &Spot<'_>) -> ZoneId {
    spot.reference().zone(nlog.heap.zone_shift())
}

#[test]
fn writers_share_a_file_and_one_that_gives_up_leaves_a_void() {
    let nlog = nlog();
    let home = nlog.home(0, 0);
    let places: Vec<_> = (0..4).map(|_| nlog.reserve(home, 100, Use::Put).expect("room")).collect();
    let zone = zone_of(nlog, &places[0]);
    assert!(places.iter().all(|place| zone_of(nlog, place) == zone && place.taken() == 128));
    let mut writer = Writer::default();
    // The last one first: no place waits for another one.
    for (number, place) in places.into_iter().enumerate().rev() {
        let value = [number as u8; 50];
        writer.write(&place, Content::value(b"key", &value));
        if number != 1 {
            place.published();
        }
    }
    let (record, void) = (('r', 128), ('v', 128));
    let rest = ('h', 4096 - FIRST_RECORD - 4 * 128);
    assert_eq!(kinds(nlog, zone), [record, void, record, record, rest]);
}

/// A program may write while it unwinds, in a `Drop` of its own.
#[test]
fn a_writer_that_publishes_while_its_thread_unwinds_leaves_like_any_other() {
    struct WritesAtLast(Nlog<'static>);
    impl Drop for WritesAtLast {
        fn drop(&mut self) {
            Writer::default().put(self.0, 0, b"key", b"value", 0);
        }
    }
    let nlog = nlog();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _last = WritesAtLast(nlog);
        panic!("expected");
    }));
    assert!(unwound.is_err());
    nlog.close_all();
    assert!(!nlog.is_closing(), "nobody is under way");
}

/// Damage to the zone table must not lose a file unseen, also when its first record counts no more.
#[test]
fn a_file_that_the_table_has_lost_is_noticed_by_its_marked_record() {
    let nlog = nlog();
    let mut writer = Writer::default();
    let old = writer.put(nlog, 0, b"key", b"old", 0);
    writer.put(nlog, 0, b"key", b"new", nlog.parent_word(old.reference));
    let zone = old.reference.zone(nlog.heap.zone_shift());
    nlog.heap.space().release_zone(zone);
    assert_eq!(nlog.heap.orphans(), [zone]);
    nlog.mark(&old);
    assert_eq!(nlog.heap.orphans(), [zone]);
}

#[test]
fn a_full_file_is_sealed_by_its_last_writer_once_it_has_published() {
    let nlog = nlog();
    let home = nlog.home(0, 0);
    let first = nlog.reserve(home, 4096, Use::Put).expect("room");
    let zone = zone_of(nlog, &first);
    let mut writer = Writer::default();
    let value = [7; 4000];
    writer.write(&first, Content::value(b"key", &value));
    let end = loop {
        let place = nlog.reserve(home, 4096, Use::Put).expect("room");
        let end = place.reference().offset(nlog.heap.zone_shift());
        writer.write(&place, Content::value(b"key", &value));
        let is_other = zone_of(nlog, &place) != zone;
        place.published();
        if is_other {
            break end;
        }
    };
    assert_eq!(end, FIRST_RECORD, "the other file is new");
    // SAFETY: only the end mark changes.
    let end_of = || unsafe { nlog.file_info(zone) }.expect("a file").segment.sealed_end;
    let life = nlog.heap.life_of(zone);
    assert_eq!((end_of(), nlog.heap.take_victim(zone, life)), (None, false), "a writer is under way");
    first.published();
    assert_eq!(end_of(), Some(FIRST_RECORD + 3 * 4096));
    assert!(nlog.heap.take_victim(zone, life) && !nlog.heap.take_victim(zone, life));
    nlog.heap.leave_victim(zone);
    assert!(nlog.heap.take_victim(zone, life));
}

#[test]
fn what_stands_behind_a_hole_is_found_and_nothing_behind_the_high_water() {
    let nlog = nlog();
    let home = nlog.home(0, 0);
    let mut writer = Writer::default();
    let lost = nlog.reserve(home, 1000, Use::Put).expect("room");
    let kept = nlog.reserve(home, 100, Use::Put).expect("room");
    let zone = zone_of(nlog, &kept);
    writer.write(&kept, Content::value(b"key", &[7; 50]));
    kept.published();
    // A crash: nobody covers it.
    std::mem::forget(lost);
    let hole = ('h', 1024);
    let rest = ('h', 4096 - FIRST_RECORD - 1024 - 128);
    assert_eq!(kinds(nlog, zone), [hole, ('r', 128), rest]);
    // Without a high water that proves itself, the whole zone is looked at.
    let start = nlog.heap.space().zone_offset(zone);
    nlog.heap.region().store(start + HIGH_WATER, 99);
    let rest = ('h', (16 << 10) - FIRST_RECORD - 1024 - 128);
    assert_eq!(kinds(nlog, zone), [hole, ('r', 128), rest]);
}

/// A copy has the number of its original, which is below that of a younger life.
#[test]
fn a_copy_behind_a_hole_is_found() {
    let nlog = nlog();
    let mut writer = Writer::default();
    let old = writer.put(nlog, 0, b"key", b"old", 0);
    let home = nlog.home(0, 1);
    let lost = nlog.reserve(home, 1000, Use::Move).expect("room");
    let content = Content::value(b"key", b"old").copy_of(nlog.parent_word(old.reference));
    let place = nlog.reserve(home, content.record_len(), Use::Move).expect("room");
    let zone = zone_of(nlog, &place);
    assert!(zone != nlog.zone_of(old.reference) && old.sequence < nlog.life_of(place.reference()));
    assert!(place.write(&mut writer.encoder, &content, old.sequence).is_none());
    let copy = place.reference();
    place.published();
    // A crash: nobody covers it.
    std::mem::forget(lost);
    let found = |rule| {
        let _left_out = leave_out(rule);
        let entries = items(nlog, zone).into_iter().filter_map(|(_, entry)| entry);
        entries.map(|entry| (entry.reference, entry.is_copy)).collect::<Vec<_>>()
    };
    assert_eq!(found(None), [(copy, true)]);
    assert_eq!(found(Some(Twin::CopiesUnlikely)), []);
}

#[test]
fn a_parent_is_proved_and_marked_and_helped() {
    let nlog = nlog();
    let (mut writer, mut buffer) = (Writer::default(), Vec::new());
    let old = writer.put(nlog, 0, b"key", b"old", 0);
    assert_eq!(nlog.before(&old, b"key", &mut buffer), Before::Nothing);
    let new = writer.put(nlog, 0, b"key", b"new", nlog.parent_word(old.reference));
    assert_eq!(nlog.before(&new, b"key", &mut buffer), Before::Entry(old));
    assert_eq!(nlog.before(&new, b"another", &mut buffer), Before::Nothing, "of another key");
    let wrong = Entry { parent: new.parent ^ 1, ..new };
    assert_eq!(nlog.before(&wrong, b"key", &mut buffer), Before::Nothing, "of another life");
    let older = Entry { sequence: old.sequence, ..new };
    assert_eq!(nlog.before(&older, b"key", &mut buffer), Before::Nothing, "not before it");
    let copy = Entry { is_copy: true, ..older };
    assert_eq!(nlog.before(&copy, b"key", &mut buffer), Before::Entry(old));
    assert_eq!(nlog.before(&Entry { is_copy: true, ..new }, b"key", &mut buffer), Before::Nothing);

    nlog.mark(&old);
    assert_eq!(nlog.before(&new, b"key", &mut buffer), Before::Marked(old.reference));
    nlog.mark(&old);
    nlog.help(old.reference);
    let zone = old.reference.zone(nlog.heap.zone_shift());
    assert_eq!(kinds(nlog, zone)[..2], [('v', 64), ('r', 64)]);
}

/// Whether a walk along parents, and a mark, wait while a cleaner beside them frees the file of a parent: it
/// takes the proof out of the header first, and makes that durable then.
fn waits_for_an_end(rule: Option<Twin>) -> bool {
    let _left_out = leave_out(rule);
    let nlog = nlog();
    let mut writer = Writer::default();
    let old = writer.put(nlog, 0, b"key", b"old", 0);
    let new = writer.put(nlog, 1, b"key", b"new", nlog.parent_word(old.reference));
    let zone = nlog.zone_of(old.reference);
    let check = nlog.heap.space().zone_offset(zone);
    let freeing = nlog.heap.ending_held();
    nlog.heap.region().store(check, !nlog.heap.region().load(check));
    std::thread::scope(|scope| {
        let walk = scope.spawn(inherited(move || nlog.before(&new, b"key", &mut Vec::new())));
        let mark = scope.spawn(inherited(move || nlog.mark(&old)));
        // One that waits is found waiting; one that does not has the time to end.
        let turns = if rule.is_none() { 1 } else { 200 };
        let have_ended = (0..turns).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            walk.is_finished() && mark.is_finished()
        });
        let waits = !walk.is_finished() && !mark.is_finished();
        drop(freeing);
        assert_eq!(walk.join().expect("no panic"), Before::Nothing);
        waits && !have_ended
    })
}

/// Meanwhile the file's records would be back after a crash, and those that they supersede must not be.
#[test]
fn a_parent_whose_file_is_being_freed_is_not_gone_before_that_is_durable() {
    assert!(waits_for_an_end(None), "its end is not durable");
    assert!(!waits_for_an_end(Some(Twin::EndsUnawaited)));
}

/// A copy may come to stand where the original of its original stood, in a life that has the same bits.
#[test]
fn of_two_that_name_each_other_the_one_in_the_younger_life_is_the_copy() {
    let nlog = nlog();
    let mut writer = Writer::default();
    let (one, other) = (writer.put(nlog, 0, b"key", b"v", 0), writer.put(nlog, 1, b"key", b"v", 0));
    let name = |entry: &Entry| nlog.parent_word(entry.reference);
    let one = Entry { is_copy: true, parent: name(&other), ..one };
    let other = Entry { is_copy: true, parent: name(&one), sequence: one.sequence, ..other };
    // The second file was opened later.
    assert!(nlog.is_parent_of(&one, &other) && !nlog.is_parent_of(&other, &one));
}

#[test]
fn in_a_full_pool_any_tail_serves_and_deletions_have_the_reserve() {
    let nlog = nlog();
    let (mut writer, mut stripe, mut written) = (Writer::default(), 0, 0);
    let full = loop {
        match nlog.reserve(nlog.home(0, stripe), 1000, Use::Put) {
            Ok(place) => {
                writer.write(&place, Content::value(b"key", &[1; 900]));
                place.published();
            }
            Err(full) => break full,
        }
        (stripe, written) = (stripe + 1, written + 1);
    };
    assert!(matches!(full, HeapError::Full(_)), "{full}");
    let (free, all) = (u64::from(nlog.heap.space().free_zones()), u64::from(nlog.heap.space().zone_count()));
    assert_eq!(free, u64::from(nlog.heap.reserve()));
    let in_a_file = ((16 << 10) - FIRST_RECORD) / 1024;
    assert_eq!(written as u64, (all - free) * in_a_file, "all tails are full");
    let of_delete = |stripe| nlog.reserve(nlog.home(0, stripe), 1000, Use::Delete);
    let place = of_delete(3).expect("the reserve");
    assert_eq!(zone_of(nlog, &place), zone_of(nlog, &of_delete(5).expect("a tail of another cluster")));
    drop(place);
    assert!(nlog.reserve(nlog.home(0, 3), 1000, Use::Put).is_err(), "it is for deletions");
    assert!(matches!(nlog.reserve(nlog.home(0, 0), 20_000, Use::Put), Err(HeapError::TooLong { .. })));
}

/// Puts until that fails, at tails of all clusters.
fn fill(nlog: Nlog<'_>) {
    for stripe in 0.. {
        let Ok(place) = nlog.reserve(nlog.home(0, stripe), 1000, Use::Put) else { return };
        Writer::default().write(&place, Content::value(b"key", &[1; 900]));
        place.published();
    }
}

/// Else each cluster that a cleaner copies to would hold a zone of the reserve.
#[test]
fn moves_share_a_tail_while_zones_are_scarce() {
    let nlog = nlog();
    fill(nlog);
    let of_move = |stripe| nlog.reserve(nlog.home(0, stripe), 1000, Use::Move).expect("the reserve");
    let place = of_move(3);
    assert_eq!(zone_of(nlog, &place), zone_of(nlog, &of_move(5)));
    assert_eq!(nlog.heap.space().free_zones(), nlog.heap.reserve() - 1);
}

#[test]
fn the_tail_of_a_cleaner_is_not_for_puts_while_zones_are_scarce() {
    let nlog = nlog();
    fill(nlog);
    let place = nlog.reserve(nlog.home(0, 3), 1000, Use::Move).expect("the reserve");
    for stripe in [3, 5] {
        assert!(nlog.reserve(nlog.home(0, stripe), 1000, Use::Put).is_err(), "it is for copies");
    }
    drop(place);
}

/// Several cleaners could each take what another one counted on.
#[test]
fn the_last_zone_is_left_to_a_cleaner_that_works_alone() {
    let nlog = nlog();
    fill(nlog);
    let until_full = |purpose| {
        while let Ok(place) = nlog.reserve(nlog.home(0, 3), 1000, purpose) {
            drop(place);
        }
        nlog.heap.space().free_zones()
    };
    assert_eq!((until_full(Use::MoveBeside), until_full(Use::Move)), (1, 0));
}

/// On a disk that may be full, the number of free zones says nothing about their storage.
#[test]
fn a_reserve_in_a_file_is_whole_once_storage_is_kept_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let file = Region::create(path, 1 << 20, Some(MediumKind::File), Durability::Process).expect("room");
    let nlog = nlog_of(test_heap::heap_on(file));
    let heap = nlog.heap;
    let first = Writer::default().put(nlog, 0, b"key", b"value", 0);
    fill(nlog);
    let reserve = heap.reserve();
    assert!(heap.has_left(reserve));
    drop(nlog.reserve(nlog.home(0, 3), 1000, Use::Move).expect("a zone that is kept"));
    heap.free(nlog.zone_of(first.reference));
    assert_eq!((heap.space().free_zones(), heap.has_left(reserve)), (reserve, false));
    let place = nlog.reserve(nlog.home(0, 3), 1000, Use::Put).expect("the tail of the move");
    assert!(heap.has_left(reserve), "the put kept storage in the zone that was freed");
    drop(place);
}

/// A cleaner that walks along parents may come to a zone that another thread has just taken and that has no
/// storage yet. On a full file system in memory, a read there once ended the process.
#[test]
fn a_zone_in_use_without_storage_is_not_read_for_a_parent() {
    use std::os::unix::fs::MetadataExt;
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return println!("skipped: this system has no /dev/shm");
    };
    let path = folder.path().join("pool");
    let file = Region::create(&path, 1 << 20, Some(MediumKind::File), Durability::Process).expect("room");
    let nlog = nlog_of(test_heap::heap_on(file));
    let (heap, mut writer) = (nlog.heap, Writer::default());
    let old = writer.put(nlog, 0, b"key", b"old", 0);
    let new = writer.put(nlog, 1, b"key", b"new", nlog.parent_word(old.reference));
    let zone = nlog.zone_of(old.reference);
    let (start, len) = (heap.space().zone_offset(zone), heap.space().zone_size());
    assert_eq!(heap.region().discard(start, len).expect("holes"), len);
    assert!(!heap.space().is_free(zone));
    let blocks = || path.metadata().expect("a file").blocks();
    let before = blocks();
    assert_eq!(nlog.before(&new, b"key", &mut Vec::new()), Before::Nothing);
    assert_eq!(blocks(), before, "the look has taken storage");
}
