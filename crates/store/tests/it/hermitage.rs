//! A table of anomalies and levels: whether a level lets an anomaly happen. The list of the anomalies is that
//! of Kleppmann's Hermitage, their names are those of Adya's thesis (MIT, 1999).
//!
//! Every cell is a test. A schedule of two or three transactions tries to bring the anomaly about, and says
//! whether it did; the level says whether it may. Weaker levels must show what they allow, since a schedule
//! that never shows anything proves nothing of the stronger ones.

use quipu::{Client, Design, Error, Isolation, Options, Store, Transaction};
use std::ops::Bound::Unbounded;

/// A store in which `x` is 10 and `y` is 20, and three clients of it.
struct World {
    store: Store,
    clients: [Client; 3],
    _folder: tempfile::TempDir,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().design(Design::XP).size(4 << 20).zone_size(64 << 10);
    let store = Store::create(folder.path().join("pool"), &options).unwrap();
    let mut clients = [(); 3].map(|()| store.client());
    clients[0].put_many(&[("x", "10"), ("y", "20")]).unwrap();
    World { store, clients, _folder: folder }
}

impl World {
    /// Transactions of this level, begun in order.
    fn begin(&mut self, level: Isolation) -> [Transaction<'_>; 3] {
        self.clients.each_mut().map(|client| client.begin(level).unwrap())
    }

    /// The values of `x` and `y` at the end.
    fn end(&self) -> [Option<u32>; 2] {
        let client = self.store.client();
        ["x", "y"].map(|key| client.get(key.as_bytes()).unwrap().map(|value| number(&value)))
    }
}

fn number(value: &[u8]) -> u32 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

fn get(own: &Transaction<'_>, key: &str) -> Option<u32> {
    own.get(key.as_bytes()).unwrap().map(|value| number(&value))
}

fn put(own: &mut Transaction<'_>, key: &str, value: u32) {
    own.put(key.as_bytes(), value.to_string().as_bytes()).unwrap();
}

/// The keys whose values are such.
fn those(own: &Transaction<'_>, such: impl Fn(u32) -> bool) -> Vec<String> {
    let pairs = own.range(Unbounded, Unbounded).map(Result::unwrap);
    let pairs = pairs.filter(|(_, value)| such(number(value)));
    pairs.map(|(key, _)| String::from_utf8(key.into_owned()).unwrap()).collect()
}

fn delete_those(own: &mut Transaction<'_>, such: impl Fn(u32) -> bool) {
    for key in those(own, such) {
        own.delete(key.as_bytes()).unwrap();
    }
}

/// Whether a commit succeeded; a refused one names a conflict.
fn commits(own: Transaction<'_>) -> bool {
    match own.commit() {
        Ok(()) => true,
        Err(Error::Conflict { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// G0: the writes of two transactions mix.
fn dirty_write(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    put(&mut one, "x", 11);
    put(&mut two, "x", 12);
    put(&mut one, "y", 21);
    assert!(commits(one));
    put(&mut two, "y", 22);
    let second = commits(two);
    assert_eq!(second, level == Isolation::ReadCommitted, "the first committer wins");
    let whole = if second { [Some(12), Some(22)] } else { [Some(11), Some(21)] };
    world.end() != whole
}

/// G1a: a write is seen that is taken back.
fn aborted_read(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, two, _] = world.begin(level);
    put(&mut one, "x", 101);
    let before = (get(&two, "x"), those(&two, |value| value == 101));
    one.rollback();
    let behind = (get(&two, "x"), those(&two, |value| value == 101));
    assert!(commits(two));
    [before, behind].iter().any(|(x, those)| *x != Some(10) || !those.is_empty())
}

/// G1b: a write is seen that its transaction replaces.
fn intermediate_read(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, two, _] = world.begin(level);
    put(&mut one, "x", 101);
    let before = get(&two, "x");
    put(&mut one, "x", 11);
    assert!(commits(one));
    let behind = get(&two, "x");
    assert_eq!(behind == Some(11), level == Isolation::ReadCommitted);
    assert!(commits(two));
    before == Some(101) || behind == Some(101)
}

/// G1c: two transactions see each other's writes.
fn circular_flow(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    put(&mut one, "x", 11);
    put(&mut two, "y", 22);
    let (y, x) = (get(&one, "y"), get(&two, "x"));
    assert!(commits(one));
    // Neither saw the other's write: that is an anti-dependency each way.
    assert_eq!(commits(two), level != Isolation::Serializable);
    (y, x) == (Some(22), Some(11))
}

/// OTV: a transaction that was seen is seen no more.
fn observed_vanishes(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, three] = world.begin(level);
    put(&mut one, "x", 11);
    put(&mut one, "y", 19);
    put(&mut two, "x", 12);
    assert!(commits(one));
    let mut seen = vec![get(&three, "x")];
    put(&mut two, "y", 18);
    seen.push(get(&three, "y"));
    let second = commits(two);
    assert_eq!(second, level == Isolation::ReadCommitted);
    seen.extend([get(&three, "x"), get(&three, "y")]);
    assert!(commits(three));
    let expected = match level {
        Isolation::ReadCommitted => [11, 19, 12, 18],
        Isolation::Snapshot | Isolation::Serializable => [10, 20, 10, 20],
    };
    seen != expected.map(Some)
}

/// PMP: a range shows a key that it did not show before.
fn many_preceders(level: Isolation) -> bool {
    let mut world = world();
    let [one, mut two, _] = world.begin(level);
    assert!(those(&one, |value| value == 30).is_empty());
    put(&mut two, "z", 30);
    assert!(commits(two));
    let found = those(&one, |value| value % 3 == 0);
    assert!(commits(one));
    found == ["z"]
}

/// PMP for a write: keys are deleted that are such no more, and others stay that are such.
fn many_preceders_of_a_write(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    for (key, value) in [("x", 20), ("y", 30)] {
        assert_eq!(get(&one, key), Some(value - 10));
        put(&mut one, key, value);
    }
    delete_those(&mut two, |value| value == 20);
    assert!(commits(one));
    let second = commits(two);
    assert!(second || world.end() == [Some(20), Some(30)]);
    second && world.end() == [Some(20), None]
}

/// P4: of two changes of a value one is lost.
fn lost_update(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    let (x, also) = (get(&one, "x").unwrap(), get(&two, "x").unwrap());
    put(&mut one, "x", x + 1);
    put(&mut two, "x", also + 1);
    assert!(commits(one));
    commits(two) && world.end()[0] == Some(11)
}

/// P4 with reads that say that they come before a write.
fn lost_update_of_a_locked_read(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    let [x, also] = [&mut one, &mut two].map(|own| number(&own.get_for_update(b"x").unwrap().unwrap()));
    put(&mut one, "x", x + 1);
    put(&mut two, "x", also + 1);
    assert!(commits(one));
    commits(two) && world.end()[0] == Some(11)
}

/// G-single: one read is from before a commit, and one from behind it.
fn read_skew(level: Isolation) -> bool {
    let mut world = world();
    let [one, mut two, _] = world.begin(level);
    assert_eq!(get(&one, "x"), Some(10));
    put(&mut two, "x", 12);
    put(&mut two, "y", 18);
    assert!(commits(two));
    let y = get(&one, "y");
    assert!(commits(one));
    y == Some(18)
}

/// G-single by ranges.
fn read_skew_of_ranges(level: Isolation) -> bool {
    let mut world = world();
    let [one, mut two, _] = world.begin(level);
    assert_eq!(those(&one, |value| value % 5 == 0), ["x", "y"]);
    put(&mut two, "x", 12);
    assert!(commits(two));
    let found = those(&one, |value| value % 3 == 0);
    assert!(commits(one));
    found == ["x"]
}

/// G-single on a write: it goes over a commit of which the transaction has read the state before.
fn read_skew_on_a_write(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    assert_eq!(get(&one, "x"), Some(10));
    put(&mut two, "x", 12);
    put(&mut two, "y", 18);
    assert!(commits(two));
    put(&mut one, "y", 30);
    commits(one) && world.end() == [Some(12), Some(30)]
}

/// G-single on a write of what a range shows: it does not find what was there at the first read.
fn read_skew_on_a_write_of_a_range(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    assert_eq!(get(&one, "x"), Some(10));
    put(&mut two, "x", 12);
    put(&mut two, "y", 18);
    assert!(commits(two));
    delete_those(&mut one, |value| value == 20);
    let found = get(&one, "y");
    let done = commits(one);
    assert_eq!(world.end(), [Some(12), Some(18)]);
    // The range of the first state shows `y`, and the commit is refused.
    assert_eq!(found.is_none(), !done);
    done
}

/// G2 of keys: each of two reads what the other writes.
fn write_skew(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    for own in [&one, &two] {
        assert_eq!((get(own, "x"), get(own, "y")), (Some(10), Some(20)));
    }
    put(&mut one, "x", 11);
    put(&mut two, "y", 21);
    assert!(commits(one));
    commits(two) && world.end() == [Some(11), Some(21)]
}

/// G2 of keys that are not there.
fn write_skew_of_absent_keys(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    assert_eq!((get(&one, "w"), get(&two, "z")), (None, None));
    put(&mut one, "z", 1);
    put(&mut two, "w", 1);
    assert!(commits(one));
    commits(two)
}

/// G2: each of two puts a key into a range that the other has read.
fn phantoms(level: Isolation) -> bool {
    let mut world = world();
    let [mut one, mut two, _] = world.begin(level);
    for own in [&one, &two] {
        assert!(those(own, |value| value % 3 == 0).is_empty());
    }
    put(&mut one, "w", 30);
    put(&mut two, "z", 42);
    assert!(commits(one));
    commits(two)
}

/// G2 with two anti-dependencies of three edges: a reader sees the second writer and not the first, which
/// must come before it.
fn reader_between(level: Isolation) -> bool {
    let World { store, clients: [first, second, _], .. } = &mut world();
    let (mut one, mut two) = (first.begin(level).unwrap(), second.begin(level).unwrap());
    assert_eq!(those(&one, |_| true), ["x", "y"]);
    let y = get(&two, "y").unwrap();
    put(&mut two, "y", y + 5);
    assert!(commits(two));
    let mut client = store.client();
    let reader = client.begin(level).unwrap();
    assert_eq!(those(&reader, |value| value == 10 || value == 25), ["x", "y"]);
    assert!(commits(reader));
    put(&mut one, "x", 0);
    commits(one)
}

/// The cells: the name of the test, the schedule, the level, and whether the level lets it happen.
macro_rules! cells {
    ($($name:ident: $schedule:ident at $level:ident is $shown:ident;)*) => {
        $(#[test]
        fn $name() {
            assert_eq!($schedule(Isolation::$level), cells!($shown));
        })*
    };
    (prevented) => { false };
    (shown) => { true };
}

cells! {
    hermitage_g0_read_committed: dirty_write at ReadCommitted is prevented;
    hermitage_g0_snapshot: dirty_write at Snapshot is prevented;
    hermitage_g0_serializable: dirty_write at Serializable is prevented;
    hermitage_g1a_read_committed: aborted_read at ReadCommitted is prevented;
    hermitage_g1a_snapshot: aborted_read at Snapshot is prevented;
    hermitage_g1a_serializable: aborted_read at Serializable is prevented;
    hermitage_g1b_read_committed: intermediate_read at ReadCommitted is prevented;
    hermitage_g1b_snapshot: intermediate_read at Snapshot is prevented;
    hermitage_g1b_serializable: intermediate_read at Serializable is prevented;
    hermitage_g1c_read_committed: circular_flow at ReadCommitted is prevented;
    hermitage_g1c_snapshot: circular_flow at Snapshot is prevented;
    hermitage_g1c_serializable: circular_flow at Serializable is prevented;
    hermitage_otv_read_committed: observed_vanishes at ReadCommitted is prevented;
    hermitage_otv_snapshot: observed_vanishes at Snapshot is prevented;
    hermitage_otv_serializable: observed_vanishes at Serializable is prevented;
    hermitage_pmp_read_committed: many_preceders at ReadCommitted is shown;
    hermitage_pmp_snapshot: many_preceders at Snapshot is prevented;
    hermitage_pmp_serializable: many_preceders at Serializable is prevented;
    hermitage_pmp_write_read_committed: many_preceders_of_a_write at ReadCommitted is shown;
    hermitage_pmp_write_snapshot: many_preceders_of_a_write at Snapshot is prevented;
    hermitage_pmp_write_serializable: many_preceders_of_a_write at Serializable is prevented;
    hermitage_p4_read_committed: lost_update at ReadCommitted is shown;
    hermitage_p4_snapshot: lost_update at Snapshot is prevented;
    hermitage_p4_serializable: lost_update at Serializable is prevented;
    hermitage_p4_for_update_read_committed: lost_update_of_a_locked_read at ReadCommitted is prevented;
    hermitage_p4_for_update_snapshot: lost_update_of_a_locked_read at Snapshot is prevented;
    hermitage_p4_for_update_serializable: lost_update_of_a_locked_read at Serializable is prevented;
    hermitage_g_single_read_committed: read_skew at ReadCommitted is shown;
    hermitage_g_single_snapshot: read_skew at Snapshot is prevented;
    hermitage_g_single_serializable: read_skew at Serializable is prevented;
    hermitage_g_single_range_read_committed: read_skew_of_ranges at ReadCommitted is shown;
    hermitage_g_single_range_snapshot: read_skew_of_ranges at Snapshot is prevented;
    hermitage_g_single_range_serializable: read_skew_of_ranges at Serializable is prevented;
    hermitage_g_single_write_read_committed: read_skew_on_a_write at ReadCommitted is shown;
    hermitage_g_single_write_snapshot: read_skew_on_a_write at Snapshot is prevented;
    hermitage_g_single_write_serializable: read_skew_on_a_write at Serializable is prevented;
    hermitage_g_single_write_of_range_read_committed: read_skew_on_a_write_of_a_range at ReadCommitted is shown;
    hermitage_g_single_write_of_range_snapshot: read_skew_on_a_write_of_a_range at Snapshot is prevented;
    hermitage_g_single_write_of_range_serializable: read_skew_on_a_write_of_a_range at Serializable is prevented;
    hermitage_g2_item_read_committed: write_skew at ReadCommitted is shown;
    hermitage_g2_item_snapshot: write_skew at Snapshot is shown;
    hermitage_g2_item_serializable: write_skew at Serializable is prevented;
    hermitage_g2_item_absent_read_committed: write_skew_of_absent_keys at ReadCommitted is shown;
    hermitage_g2_item_absent_snapshot: write_skew_of_absent_keys at Snapshot is shown;
    hermitage_g2_item_absent_serializable: write_skew_of_absent_keys at Serializable is prevented;
    hermitage_g2_read_committed: phantoms at ReadCommitted is shown;
    hermitage_g2_snapshot: phantoms at Snapshot is shown;
    hermitage_g2_serializable: phantoms at Serializable is prevented;
    hermitage_g2_two_edges_read_committed: reader_between at ReadCommitted is shown;
    hermitage_g2_two_edges_snapshot: reader_between at Snapshot is shown;
    hermitage_g2_two_edges_serializable: reader_between at Serializable is prevented;
}
