//! Expiry: a record whose time has passed is as absent as one that was deleted, and its space comes back.

use super::contents::{Contents, value_of, verify};
use super::fixture::{Ending, Fixture, Outcome};
use quipu::{Change, Client, Entry, Expiry, WriteBatch};
use std::time::Duration;

const PASSED: u64 = 1;
const NEVER: u64 = u64::MAX;

/// By every way of asking.
fn assert_absent(client: &mut Client, key: &[u8]) -> Outcome {
    assert_eq!(client.get(key)?, None, "get");
    assert!(!client.get_into(key, &mut Vec::new())?, "get_into");
    client.get_many(&[key], |_, value| assert_eq!(value, None, "get_many"))?;
    assert_eq!(client.expiry(key)?, None, "expiry");
    assert!(!client.contains_key(key)?, "contains_key");
    assert_eq!(client.version(key)?, None, "version");
    assert!(!client.remove(key)?, "remove");
    assert!(!client.compare_and_swap(key, Some(b"value"), None)?, "compare_and_swap");
    client.update(key, |old| {
        assert_eq!(old, None, "update");
        None::<Vec<u8>>
    })?;
    client.update_with(key, |old| {
        assert_eq!(old, None, "update_with");
        Change::Keep
    })?;
    assert!(client.pin().iter().all(|(other, _)| other != key), "iteration");
    assert!(client.pin().keys().all(|other| other != key), "keys");
    Ok(())
}

/// An update sees when the value expires, and says when the new one does.
pub(super) fn an_update_sees_and_sets_the_time(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    let large = vec![7; store.limits().1.min(100_000) as usize];
    for value in [&b"value"[..], b"", &large] {
        client.put_until(b"key", value, NEVER)?;
        let keep = |old: Option<Entry<'_>>| old.map(|old| (old.value.to_vec(), old.expiry));
        let mut seen = None;
        client.update_with(b"key", |old| {
            seen = keep(old);
            old.map_or(Change::Keep, |old| Change::Put(old.value.into(), old.expiry))
        })?;
        assert_eq!(seen, Some((value.to_vec(), Expiry::At(NEVER))));
        assert_eq!(client.expiry(b"key")?, Some(Expiry::At(NEVER)), "it was kept");
        client.update_with(b"key", |_| Change::put(value.to_vec()))?;
        assert_eq!(client.expiry(b"key")?, Some(Expiry::Never));
        client.update_with(b"key", |_| Change::put_until(value.to_vec(), NEVER - 1))?;
        assert_eq!(client.expiry(b"key")?, Some(Expiry::At(NEVER - 1)));
        client.update(b"key", |old| old.map(<[u8]>::to_vec))?;
        assert_eq!(client.expiry(b"key")?, Some(Expiry::Never), "an update sets none");
        client.update_with(b"key", |_| Change::put_until(value.to_vec(), PASSED))?;
        assert_absent(&mut client, b"key")?;
    }
    Ok(())
}

/// A time that has passed hides the record and all before it; one that has not changes nothing.
pub(super) fn what_has_expired_is_absent(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut client = store.client();
    for key in [&b"fresh"[..], b"had a value", b"batch"] {
        if key == b"had a value" {
            client.put(key, b"value")?;
        }
        if key == b"batch" && store.design().can().batches {
            client.write(WriteBatch::new().put(key, b"value").put_until(key, b"value", PASSED))?;
        } else {
            client.put_until(key, b"value", PASSED)?;
        }
        assert_absent(&mut client, key)?;
        assert!(client.put_if_absent(key, b"again")?);
        assert_eq!(client.get(key)?.as_deref(), Some(&b"again"[..]));
        assert_eq!(client.expiry(key)?, Some(Expiry::Never));
        client.put_until(key, b"value", NEVER)?;
        assert_eq!(client.get(key)?.as_deref(), Some(&b"value"[..]));
        assert_eq!(client.expiry(key)?, Some(Expiry::At(NEVER)));
        client.put_until(key, b"value", PASSED)?;
    }
    client.put(b"stays", b"value")?;
    // The longest key, with a value of every length that stands in a record.
    let (longest, _) = store.limits();
    let key = vec![b'k'; longest as usize];
    client.put_until(&key, &vec![1; 16 << 10], PASSED)?;
    client.delete(&key)?;
    for ending in Ending::ALL {
        drop(client);
        store.compact()?;
        store = fixture.reopen(store, ending)?;
        client = store.client();
        for key in [&b"fresh"[..], b"had a value", b"batch"] {
            assert_absent(&mut client, key)?;
        }
        assert_eq!(client.get(b"stays")?.as_deref(), Some(&b"value"[..]));
    }
    Ok(())
}

/// A value that has expired stays away when the clock is set back: in this handle, over a close and a crash.
pub(super) fn time_does_not_go_back(fixture: &Fixture) -> Outcome {
    const HOUR: u64 = 3_600_000;
    let mut store = fixture.create()?;
    let Some(start) = fixture.set_clock(|now| now) else { return Ok(()) };
    for ending in Ending::ALL {
        fixture.set_clock(|_| start);
        let mut client = store.client();
        client.put_until(b"asked", b"value", start + HOUR)?;
        client.put_until(b"unasked", b"value", start + HOUR)?;
        client.put_until(b"later", b"value", start + 3 * HOUR)?;
        fixture.set_clock(|_| start + 2 * HOUR);
        assert_eq!(client.get(b"asked")?, None);
        fixture.set_clock(|_| start);
        for key in [&b"asked"[..], b"unasked"] {
            assert_eq!(client.get(key)?, None, "in this handle");
        }
        // By this clock two hours have passed.
        client.put_for(b"lasts", b"value", Duration::from_millis(HOUR))?;
        drop(client);
        store = fixture.reopen(store, ending)?;
        let ahead = store.recovery().expiry_ahead.as_millis() as u64;
        assert_eq!(ahead, 2 * HOUR);
        client = store.client();
        for key in [&b"asked"[..], b"unasked"] {
            assert_absent(&mut client, key)?;
        }
        for key in [&b"later"[..], b"lasts"] {
            assert_eq!(client.get(key)?.as_deref(), Some(&b"value"[..]), "{ending:?}");
        }
        // An operator may set it back.
        drop(client);
        store.close()?;
        store = fixture.open_with(|options| options.reset_expiry(true))?;
        assert!(store.recovery().expiry_ahead.is_zero());
        let mut client = store.client();
        client.put_until(b"fresh", b"value", start + HOUR)?;
        assert_eq!(client.get(b"fresh")?.as_deref(), Some(&b"value"[..]));
        fixture.set_clock(|_| start + 9 * HOUR);
        for key in [&b"fresh"[..], b"later", b"lasts"] {
            assert_eq!(client.get(key)?, None);
        }
        drop(client);
        store.close()?;
        fixture.set_clock(|_| start);
        store = fixture.open_with(|options| options.reset_expiry(true))?;
    }
    Ok(())
}

/// Records expire while nobody looks, and the pool can be filled with them for ever.
pub(super) fn space_of_what_expires_comes_back(fixture: &Fixture) -> Outcome {
    const LIFE: Duration = Duration::from_millis(40);
    let mut store = fixture.create()?;
    let mut client = store.client();
    let kept = value_of(b"kept", 0, 500);
    client.put(b"kept", &kept)?;
    // Each round takes half of the pool, and no key comes twice.
    for round in 0..8u64 {
        for number in 0..1500u64 {
            let key = [round, number].map(u64::to_le_bytes).concat();
            client.put_for(&key, &value_of(&key, 0, 1300), LIFE)?;
        }
        fixture.pass(LIFE);
        assert_eq!(client.pin().iter().count(), 1, "round {round}");
    }
    drop(client);
    for _ in 0..3 {
        store.compact()?;
    }
    let stats = store.stats();
    assert_eq!(stats.records, 1, "compaction takes expired records out of the index");
    assert!(stats.record_bytes < 100_000, "{} bytes of records are left", stats.record_bytes);
    verify(&mut store, &Contents::from([(b"kept".to_vec(), kept)]));
    Ok(())
}
