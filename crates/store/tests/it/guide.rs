//! The code of `docs/GUIDE.md`, run. Each piece stands here as it stands there, so that readers see it
//! without what is around it.

use quipu::{Change, Client, Conditions, Design, ErrorKind, Expiry, Isolation, Options, Store, WriteBatch};
use std::error::Error;
use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

type Outcome = Result<(), Box<dyn Error>>;

const GUIDE: &str = include_str!("../../../../docs/GUIDE.md");

/// Creates a pool, hands over its store, closes it, and opens it once more.
fn with_store(work: impl FnOnce(&Store) -> Outcome) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = &folder.path().join("animals.pool");
    let store = created(path)?;
    work(&store)?;
    closed(store.client(), store)?;
    let store = opened(path)?;
    assert!(store.recovery().was_clean);
    Ok(())
}

fn created(path: &Path) -> Result<Store, Box<dyn Error>> {
    let options = Options::new().size(64 << 20).design(Design::FLATSTORE_M);
    let store = Store::open_or_create(path, &options)?;
    println!("{}", store.statement());
    Ok(store)
}

fn opened(path: &Path) -> Result<Store, Box<dyn Error>> {
    let store = Store::open_with_progress(path, &Options::new(), &|done, segments| {
        eprintln!("recovered {done} of {segments} segments");
    })?;
    Ok(store)
}

fn closed(client: Client, store: Store) -> Outcome {
    drop(client);
    store.close()?;
    Ok(())
}

#[test]
fn several_threads_write() -> Outcome {
    with_store(|store| {
        std::thread::scope(|threads| {
            let mut workers = Vec::new();
            for worker in 0..2u8 {
                let mut client = store.client();
                workers.push(threads.spawn(move || client.put(&[b'w', worker], b"here")));
            }
            workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
        })?;
        let client = store.client();
        assert_eq!(client.get(&[b'w', 1])?, Some(b"here".to_vec()));
        Ok(())
    })
}

#[test]
fn one_client_writes() -> Outcome {
    with_store(|store| {
        let mut client = store.client();
        client.update(b"visits", |old| {
            let visits = old.and_then(|old| old.try_into().ok()).map_or(0, u64::from_le_bytes);
            Some((visits + 1).to_le_bytes())
        })?;
        assert_eq!(client.get(b"visits")?, Some(1u64.to_le_bytes().to_vec()));

        let mut batch = WriteBatch::new();
        batch.put(b"alice", b"7").put(b"bob", b"3").delete(b"offer");
        client.write(&batch)?;

        // To load many: a fence for every 32. After a crash each is there whole or not at all.
        let records: Vec<_> = (0..1000u32).map(|number| (number.to_be_bytes(), "wool")).collect();
        client.put_many(&records)?;
        assert_eq!(client.get(b"bob")?, Some(b"3".to_vec()));
        assert_eq!(client.get(&999u32.to_be_bytes())?, Some(b"wool".to_vec()));

        client.put_for(b"session", b"open", Duration::from_secs(3600))?;
        assert!(matches!(client.expiry(b"session")?, Some(Expiry::At(_))));

        // Changes the value and keeps its expiry.
        client.update_with(b"session", |old| match old {
            Some(entry) => Change::Put([entry.value, b"+"].concat().into(), entry.expiry),
            None => Change::Keep,
        })?;
        assert_eq!(client.get(b"session")?, Some(b"open+".to_vec()));
        assert!(matches!(client.expiry(b"session")?, Some(Expiry::At(_))));

        let seen = client.version(b"owner")?;
        assert!(client.put_if_version(b"owner", seen, b"me")?);
        assert!(!client.put_if_version(b"owner", seen, b"you")?);

        match client.put(b"llama", b"wool").map_err(|error| error.kind()) {
            Err(ErrorKind::Room) => eprintln!("delete something, or use a larger pool"),
            Err(kind) => eprintln!("{kind:?}"),
            Ok(()) => {}
        }
        assert!(client.contains_key(b"llama")?);
        Ok(())
    })
}

#[test]
fn a_guard_reads() -> Outcome {
    with_store(|store| {
        let mut client = store.client();
        client.put(b"alice", b"7")?;
        let guard = client.pin();
        if let Some(value) = guard.get(b"alice")? {
            println!("{} bytes", value.len());
        }

        let mut pairs = guard.iter();
        let bytes: usize = pairs.by_ref().map(|(key, value)| key.len() + value.len()).sum();
        pairs.ended()?; // an error if something damaged was left out
        assert_eq!(bytes, 6);
        Ok(())
    })
}

#[test]
fn a_range_is_visited() -> Outcome {
    with_store(|store| {
        let mut client = store.client();
        client.put_many(&[("job/1", "weave"), ("job/2", "dye"), ("joke", "!")])?;
        let guard = client.pin();
        for job in guard.range(Bound::Included(b"job/"), Bound::Excluded(b"job0"))? {
            let (key, value) = job?;
            println!("{} {}", key.escape_ascii(), value.escape_ascii());
        }
        assert_eq!(guard.prefix(b"job/")?.count(), 2);
        let newest = guard.prefix(b"job/")?.next_back().transpose()?;
        assert_eq!(newest.map(|(_, value)| value.into_owned()), Some(b"dye".to_vec()));
        Ok(())
    })
}

#[test]
fn a_store_is_synced_and_watched() -> Outcome {
    with_store(|store| {
        store.client().put(b"llama", b"wool")?;
        store.sync()?;

        let stats = store.stats();
        let used = stats.live_bytes() as f64 / stats.usable_bytes() as f64;
        println!("{:.0} % used, writes waited {} ms", used * 100.0, stats.stalled_ms);
        assert!(used > 0.0 && used < 0.01);
        Ok(())
    })
}

/// The pieces about tables, which only a pool of design `xp` has. Each goes on where the one before ended.
#[test]
fn tables_are_kept_apart_and_read_together() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = &folder.path().join("herds.pool");

    let store = Store::create(path, &Options::new().size(64 << 20).design(Design::XP))?;
    let herd = store.create_table("herd")?; // at a later opening: store.table("herd")?
    let mut client = store.client().on(&herd)?;
    client.put(b"llama", b"wool")?;
    assert_eq!(store.client().get(b"llama")?, None);
    println!("{} records", store.table_stats(&herd)?.records);
    assert_eq!(store.table("herd")?, herd);
    assert_eq!(store.table_stats(&herd)?.records, 1);

    let sales = store.create_table("sales")?;
    let mut batch = WriteBatch::new();
    batch.on(&herd).delete(b"llama");
    batch.on(&sales).put(b"2026-11-26", b"a llama");
    client.write(&batch)?;
    assert_eq!(client.get(b"llama")?, None);
    assert_eq!(store.client().on(&sales)?.get(b"2026-11-26")?, Some(b"a llama".to_vec()));

    let before = store.snapshot()?;
    client.put(b"alpaca", b"finer wool")?;
    let then = client.pin_at(&before)?;
    assert_eq!(then.get(b"alpaca")?, None);
    assert_eq!(client.get(b"alpaca")?, Some(b"finer wool".to_vec()));
    drop(then);
    drop(before);

    client.put_many(&[("2025-12", "a"), ("2026-01", "b"), ("2026-02", "c")])?;
    client.delete_range(Bound::Unbounded, Bound::Excluded(b"2026"))?;
    assert_eq!(client.get(b"2025-12")?, None);
    assert_eq!(client.get(b"2026-01")?, Some(b"b".to_vec()));
    closed(client, store)
}

fn amount(value: Option<impl AsRef<[u8]>>) -> u64 {
    value.and_then(|value| value.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The pieces about a change of what was read. Each goes on where the one before ended.
#[test]
fn what_was_read_is_changed() -> Outcome {
    with_store(|store| {
        let (mut client, mut other) = (store.client(), store.client());
        client.put(b"alice", &100u64.to_le_bytes())?;

        let (alice, bob) = (amount(client.get(b"alice")?), amount(client.get(b"bob")?));
        other.update(b"alice", |old| Some((amount(old) - 5).to_le_bytes()))?;
        let mut batch = WriteBatch::new();
        batch.put(b"alice", &(alice - 3).to_le_bytes()).put(b"bob", &(bob + 3).to_le_bytes());
        client.write(&batch)?;
        assert_eq!(amount(client.get(b"alice")?), 97); // 92 would be right: the other write is lost

        client.update(b"alice", |old| Some((amount(old) - 1).to_le_bytes()))?;

        let old = client.get(b"alice")?;
        let new = (amount(old.as_ref()) - 1).to_le_bytes();
        assert!(client.compare_and_swap(b"alice", old.as_deref(), Some(&new))?);

        let (old, version) = client.get_versioned(b"alice")?.unzip();
        let new = (amount(old) - 1).to_le_bytes();
        assert!(client.put_if_version(b"alice", version, &new)?);
        assert_eq!(amount(client.get(b"alice")?), 94);

        let (mut conditions, mut batch) = (Conditions::new(), WriteBatch::new());
        loop {
            conditions.clear();
            batch.clear();
            let alice = client.get_versioned(b"alice")?.unzip();
            let bob = client.get_versioned(b"bob")?.unzip();
            conditions.version(b"alice", alice.1).version(b"bob", bob.1);
            let (alice, bob) = (amount(alice.0), amount(bob.0));
            batch.put(b"alice", &(alice - 3).to_le_bytes()).put(b"bob", &(bob + 3).to_le_bytes());
            if client.write_if(&conditions, &batch)? {
                break;
            }
        }
        assert!(!client.write_if(&conditions, &batch)?);
        assert_eq!((amount(client.get(b"alice")?), amount(client.get(b"bob")?)), (91, 6));
        Ok(())
    })
}

/// The pieces about transactions, which only a pool of design `xp` has.
#[test]
fn transactions_change_what_they_have_read() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = &folder.path().join("accounts.pool");

    let options = Options::new().size(64 << 20).design(Design::XP).transaction_age(Duration::from_secs(60));
    let store = Store::create(path, &options)?;
    let (mut client, mut other) = (store.client(), store.client());
    client.put(b"alice", &5u64.to_le_bytes())?;
    for is_there in [true, false] {
        let is_done = client.transact(Isolation::Snapshot, |transaction| {
            let alice = amount(transaction.get(b"alice")?);
            if alice < 3 {
                return Ok(false); // without writes there is nothing to commit
            }
            let bob = amount(transaction.get(b"bob")?);
            transaction.put(b"alice", &(alice - 3).to_le_bytes())?;
            transaction.put(b"bob", &(bob + 3).to_le_bytes())?;
            Ok(true)
        })?;
        assert_eq!(is_done, is_there);
    }
    assert_eq!((amount(client.get(b"alice")?), amount(client.get(b"bob")?)), (2, 3));

    client.put_many(&[("job/1", "dye"), ("job/2", "weave")])?;
    let log = store.create_table("log")?;
    let mut transaction = client.begin(Isolation::Serializable)?;
    transaction.delete(b"job/1")?;
    let before = transaction.savepoint();
    transaction.on(&log)?.put(b"job/2", b"dropped")?;
    transaction.rollback_to(&before)?; // takes back the line of the log, not the deletion
    transaction.on(&log)?.put(b"job/1", b"done")?;
    let left = transaction.prefix(b"job/").count(); // as its own writes leave them
    transaction.on(&log)?.put(b"left", left.to_string().as_bytes())?;
    transaction.commit()?;
    let logged = client.on(&log)?;
    assert_eq!((logged.get(b"job/2")?, logged.get(b"left")?), (None, Some(b"1".to_vec())));
    drop(logged);

    client.put_many(&[("duty/alice", ""), ("duty/bob", "")])?;
    let is_off = client.transact(Isolation::Snapshot, |transaction| {
        let may_go = transaction.get_for_update(b"duty/bob")?.is_some();
        if may_go {
            transaction.delete(b"duty/alice")?;
        }
        Ok(may_go)
    })?;
    assert!(is_off && !client.contains_key(b"duty/alice")?);

    client.put(b"alice", &100u64.to_le_bytes())?;
    let mut transaction = client.begin(Isolation::Snapshot)?;
    let alice = amount(transaction.get(b"alice")?);
    other.put(b"alice", &50u64.to_le_bytes())?;
    transaction.put(b"alice", &(alice - 3).to_le_bytes())?;
    match transaction.commit() {
        Err(error) if error.kind() == ErrorKind::Again => eprintln!("{error}"), // begin it again
        done => done?,
    }
    assert_eq!(amount(client.get(b"alice")?), 50);
    drop(other);
    closed(client, store)
}

/// The lines of a text that are not empty, each without its indentation.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_piece_of_the_guide_stands_here() {
    // Those of a test that users write stand with the crate that they use for it.
    let here = [include_str!("guide.rs"), include_str!("../../../crashtest/tests/it/page.rs")].join("\n");
    let here = lines(&here);
    let mut pieces = 0;
    for piece in GUIDE.split("```rust\n").skip(1) {
        let piece = lines(piece.split("```").next().unwrap_or_default());
        assert!(!piece.is_empty() && here.windows(piece.len()).any(|window| window == piece), "{piece:#?}");
        pieces += 1;
    }
    assert!(pieces > 10, "{pieces}");
}
