//! A listener hears of all calls of a store, and the store does what it does without one.

use quipu::internals::{Answer, Call, Listener};
use quipu::{Change, Design, Error, Options, Store, WriteBatch};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Writes down what it hears, and refuses to put one key.
#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl Listener for Ear {
    fn begins(&self, call: &Call<'_>) -> Result<u64, Error> {
        let mut heard = self.0.lock().unwrap();
        let items: Vec<_> = call.items.iter().map(|(key, value)| (text(key), value.map(text))).collect();
        heard.push(format!("{} {:?} {items:?} {}", call.name, call.table, call.takes_room));
        match call.items.first() {
            Some((b"refused", Some(_))) => Err(Error::PoolFull { zones: 0, wanted: 0, free: 0 }),
            _ => Ok(heard.len() as u64),
        }
    }

    fn ended(&self, number: u64, answer: Answer<'_>) {
        let mut heard = self.0.lock().unwrap();
        assert_eq!(number, heard.len() as u64, "its own call has ended");
        let answer = match answer {
            Answer::Value(value) => format!("{:?}", value.map(text)),
            Answer::Changed(old, new) => format!("{:?} {:?}", old.map(text), new.map(text)),
            Answer::Failed(error) => format!("failed: {:?}", error.kind()),
            other => format!("{other:?}"),
        };
        heard.last_mut().unwrap().push_str(&format!(": {answer}"));
    }

    fn may_drop(&self) -> bool {
        true
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn with_store(
    design: Design,
    work: impl FnOnce(&Store) -> Outcome,
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options = Options::new().design(design).size(16 << 20).cleaner(false);
    let ear = Arc::new(Ear::default());
    let store = Store::create(folder.path().join("pool"), &options)?.heard_by(ear.clone());
    work(&store)?;
    store.close()?;
    let heard = std::mem::take(&mut *ear.0.lock().unwrap());
    Ok(heard)
}

#[test]
fn each_call_is_heard_with_its_answer() -> Outcome {
    let heard = with_store(Design::QUIPU, |store| {
        let mut client = store.client();
        client.put(b"a", b"1")?;
        assert!(matches!(client.put(b"refused", b"1"), Err(Error::PoolFull { .. })));
        assert_eq!((client.get(b"a")?, client.get(b"refused")?), (Some(b"1".to_vec()), None));
        client.update(b"a", |old| old.map(|old| [old, b"2"].concat()))?;
        client.update_with(b"a", |_| Change::Keep)?;
        assert!(!client.put_if_absent(b"a", b"3")? && client.compare_and_swap(b"a", Some(b"12"), None)?);
        let mut batch = WriteBatch::new();
        client.write(batch.put(b"b", b"4").delete(b"c"))?;
        assert_eq!(client.pin().get(b"b")?.as_deref(), Some(&b"4"[..]));
        assert!(client.contains_key(b"b")? && client.remove(b"b")?);
        assert!(matches!(client.put(b"", b"1"), Err(Error::KeyEmpty { .. })));
        Ok(())
    })?;
    let expected = [
        r#"put None [("a", Some("1"))] true: Done"#,
        r#"put None [("refused", Some("1"))] true"#,
        r#"get None [("a", None)] false: Some("1")"#,
        r#"get None [("refused", None)] false: None"#,
        r#"update None [("a", None)] true: Some("1") Some("12")"#,
        r#"update_with None [("a", None)] true: Some("12") Some("12")"#,
        r#"put_if_absent None [("a", None)] true: Some("12") Some("12")"#,
        r#"compare_and_swap None [("a", None)] true: Some("12") None"#,
        r#"write None [("b", Some("4")), ("c", None)] true: Done"#,
        r#"get None [("b", None)] false: Some("4")"#,
        r#"look_up None [("b", None)] false: Is(true)"#,
        r#"remove None [("b", None)] false: Is(true)"#,
        r#"put None [("", Some("1"))] true: failed: Argument"#,
    ];
    assert_eq!(heard, expected, "{heard:#?}");
    Ok(())
}

#[test]
fn tables_are_heard_by_name_and_closures_are_refused_as_ever() -> Outcome {
    let heard = with_store(Design::XP, |store| {
        let herd = store.create_table("herd")?;
        let mut client = store.client().on(&herd)?;
        client.put(b"llama", b"wool")?;
        let before = store.snapshot()?;
        client.delete_range(Bound::Included(b"l"), Bound::Unbounded)?;
        assert_eq!(client.pin_at(&before)?.iter().count(), 1);
        assert_eq!(client.pin().prefix(b"l")?.count(), 0);
        drop(before);
        let mut other = store.client();
        client.update(b"llama", |_| {
            assert!(matches!(other.put(b"inside", b"1"), Err(Error::InsideUpdate)));
            assert!(matches!(store.compact(), Err(Error::InsideUpdate)));
            None::<Vec<u8>>
        })?;
        Ok(())
    })?;
    let expected = [
        r#"create_table None [("herd", None)] true: Done"#,
        r#"put Some("herd") [("llama", Some("wool"))] true: Done"#,
        "snapshot None [] false: Done",
        r#"delete_range Some("herd") [("l", None), ("", None)] false: Done"#,
        r#"iter Some("herd") [] false: Done"#,
        r#"range Some("herd") [("l", None), ("m", None)] false: Done"#,
        r#"update Some("herd") [("llama", None)] true: None None"#,
    ];
    assert_eq!(heard, expected, "{heard:#?}");
    Ok(())
}
