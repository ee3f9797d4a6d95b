//! Tables out of pools and in again, through the library: the document's example, one state of all of them,
//! and mistakes in lists.

use super::{Pairs, block, page, read, text};
use quipu::{Design, Options, Store};
use quipu_cli::transfer::{
    ExportError, Form, FormError, ImportCause, JsonlReader, Records, TextReader, export, import,
};
use std::cell::Cell;

fn store(folder: &tempfile::TempDir, name: &str, design: Design) -> Store {
    let options = Options::new().size(4 << 20).design(design);
    Store::create(folder.path().join(name), &options).unwrap()
}

fn fill(store: &Store, table: &str, pairs: &[(&str, &str)]) {
    let table = store.table(table).or_else(|_| store.create_table(table)).unwrap();
    store.client().on(&table).unwrap().put_many(pairs).unwrap();
}

/// A pool with the tables of the document's example, created in another order.
fn herds(folder: &tempfile::TempDir) -> Store {
    let store = store(folder, "herds", Design::XP);
    store.create_table("high plains").unwrap();
    fill(&store, "herd", &[("llama", "wool"), ("alpaca", "finer wool")]);
    fill(&store, "default", &[("knot", "figure-eight")]);
    store
}

fn exported(store: &Store, only: Option<&str>, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    export(store, only, Vec::new(), form, &mut out, &|_, _| {}).unwrap();
    out
}

fn contents(store: &Store, table: &str) -> Pairs {
    let client = store.client().on(&store.table(table).unwrap()).unwrap();
    client.pin().iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
}

#[test]
fn the_document_shows_an_export_with_tables() {
    let folder = tempfile::tempdir().unwrap();
    let from = herds(&folder);
    let file = exported(&from, None, Form::Quipu);
    let page = page();
    let shown = page.split("```text\n").nth(2).unwrap().split("```").next().unwrap();
    assert_eq!(String::from_utf8(file.clone()).unwrap(), shown);
    assert_ne!(shown, block(&page, "text"));

    let to = store(&folder, "to", Design::XP);
    let imported = import(&to, None, &mut text(&file), &|_| {}).unwrap();
    assert_eq!(
        (imported.records, imported.created.as_slice()),
        (3, &["herd", "high plains"].map(str::to_owned)[..])
    );
    assert_eq!(exported(&to, None, Form::Quipu), file);
    let again = import(&to, None, &mut text(&file), &|_| {}).unwrap();
    assert!(again.created.is_empty());
}

#[test]
fn every_cut_and_every_changed_byte_of_an_export_with_tables_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let file = exported(&herds(&folder), None, Form::Quipu);
    for len in 15..file.len() {
        assert!(matches!(read(text(&file[..len])), Err(FormError::Cut(_))), "{len} bytes");
    }
    for at in 0..file.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut changed = file.clone();
            changed[at] ^= bit;
            let same = at >= file.len() - 17 && changed[at].to_ascii_lowercase() == file[at];
            assert_eq!(read(text(&changed)).is_ok(), same, "byte {at} with bit {bit:#x}");
        }
    }
}

/// The other writes come after the first records have been written.
#[test]
fn an_export_is_one_state_of_all_tables_whatever_is_written_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(&folder, "from", Design::XP);
    let pairs: Vec<_> = (0..600).map(|number| (format!("key {number:03}"), "before")).collect();
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    ["a", "b"].iter().for_each(|table| fill(&from, table, &pairs));
    let before = exported(&from, None, Form::Quipu);
    let (calls, mut file) = (Cell::new(0), Vec::new());
    let meddle = |done, total| {
        assert!(done <= total && total == 1200, "{done} of {total}");
        calls.set(calls.get() + 1);
        if calls.get() == 1 {
            ["a", "b"].iter().for_each(|table| fill(&from, table, &[("key 599", "after"), ("new", "")]));
            let client = from.client().on(&from.table("b").unwrap());
            client.unwrap().delete(b"key 000").unwrap();
        }
    };
    export(&from, None, Vec::new(), Form::Quipu, &mut file, &meddle).unwrap();
    assert!(calls.get() > 3);
    assert!(file == before, "a snapshot of the beginning");
    assert!(exported(&from, None, Form::Quipu) != before);
}

#[test]
fn an_export_of_the_default_table_alone_names_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let from = herds(&folder);
    let alone = exported(&from, Some("default"), Form::Quipu);
    let text = String::from_utf8(alone.clone()).unwrap();
    assert!(text.starts_with("quipu-export 1\nknot\tfigure-eight\nend 1 "), "{text}");
    let to = store(&folder, "to", Design::QUIPU);
    import(&to, None, &mut super::text(&alone), &|_| {}).unwrap();
    assert_eq!(exported(&to, None, Form::Quipu), alone);
    assert_eq!(exported(&from, Some("default"), Form::Jsonl), exported(&to, None, Form::Jsonl));
    // And in a pool with tables it goes where it is told to.
    let imported = import(&from, Some("knots"), &mut super::text(&alone), &|_| {}).unwrap();
    assert_eq!(imported.created, ["knots"]);
    assert_eq!(contents(&from, "knots"), contents(&from, "default"));
}

#[test]
fn one_table_is_chosen_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let from = herds(&folder);
    for form in [Form::Quipu, Form::Jsonl] {
        let file = exported(&from, None, form);
        let records = || -> Box<dyn Records> {
            match form {
                Form::Jsonl => Box::new(JsonlReader::new(&file[..], 25_000)),
                _ => Box::new(text(&file)),
            }
        };
        // A pool without tables takes one, too.
        for design in [Design::XP, Design::QUIPU] {
            let to = store(&folder, &format!("{design} {form:?}"), design);
            let refused = import(&to, Some("heard"), &mut *records(), &|_| {}).unwrap_err();
            assert!(matches!(refused.cause, ImportCause::NotThere { .. }) && refused.is_refusal());
            let imported = import(&to, Some("herd"), &mut *records(), &|_| {}).unwrap();
            assert_eq!((imported.records, imported.passed_over, to.stats().records), (2, 1, 2));
            if design == Design::XP {
                assert_eq!(contents(&to, "herd"), contents(&from, "herd"));
                assert!(to.tables().unwrap().len() == 2, "no other table is created");
            }
        }
        let to = store(&folder, &format!("refused {form:?}"), Design::QUIPU);
        let refused = import(&to, None, &mut *records(), &|_| {}).unwrap_err();
        assert!(refused.to_string().contains("\"default\"") && refused.is_refusal(), "{refused}");
        assert_eq!(to.stats().records, 0);
    }
}

#[test]
fn the_form_tsv_has_no_place_for_several_tables() {
    let folder = tempfile::tempdir().unwrap();
    let from = herds(&folder);
    let mut out = Vec::new();
    let refused = export(&from, None, Vec::new(), Form::Tsv, &mut out, &|_, _| {}).unwrap_err();
    assert!(matches!(refused, ExportError::Tables(_)) && out.is_empty());
    assert_eq!(exported(&from, Some("herd"), Form::Tsv), b"alpaca\tfiner wool\nllama\twool\n");
}

/// Objects of other programs, whose tables come in any order.
#[test]
fn tables_may_take_turns_in_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    let to = store(&folder, "to", Design::XP);
    let line = |n: u32| match n % 3 {
        0 => format!("{{\"key\":\"k{n}\",\"value\":\"\"}}\n"),
        table => {
            format!("{{\"key\":\"k{n}\",\"value\":\"\",\"table\":\"t{table}\",\"expires\":{}}}\n", 1u64 << 50)
        }
    };
    let file: String = (0..90).map(line).collect();
    let imported = import(&to, None, &mut JsonlReader::new(file.as_bytes(), 25_000), &|_| {}).unwrap();
    assert_eq!((imported.records, imported.created.len()), (90, 2));
    for table in ["default", "t1", "t2"] {
        assert_eq!(contents(&to, table).len(), 30, "{table}");
    }
    let long = format!("{{\"key\":\"k\",\"value\":\"\",\"table\":\"{}\"}}\n", "t".repeat(129));
    let found = read(JsonlReader::new(long.as_bytes(), 25_000));
    assert!(matches!(found, Err(FormError::Object { line: 1, what }) if what.contains("1 to 128 bytes")));
}

#[test]
fn mistakes_in_a_list_of_tables_name_their_line() {
    let wrong = |body: &str| read(text(format!("quipu-export 2\n{body}").as_bytes())).unwrap_err();
    for list in ["", "a\tb\n", "table 1\n", "tables\n", "tables 1 \n", "tables -1\n", "tables 99999999\n"] {
        let found = wrong(&format!("{list}x\n"));
        assert!(matches!(found, FormError::List { line: 2, .. }), "{list}: {found}");
    }
    assert!(matches!(wrong("tables 1\n\n"), FormError::List { line: 3, .. }));
    assert!(matches!(wrong(&format!("tables 1\n{}\n", "t".repeat(129))), FormError::List { line: 3, .. }));
    assert!(matches!(wrong("tables 1\n\\xff\n"), FormError::List { line: 3, .. }));
    assert!(matches!(wrong("tables 1\n\\q\n"), FormError::Escape { line: 3, column: 1 }));
    assert!(matches!(wrong("tables 2\na\n"), FormError::Cut(3)));
    assert!(matches!(wrong("tables 1\r\n"), FormError::CarriageReturn(2)));
    let wrong = |body: &str| wrong(&format!("tables 2\na\nb\n{body}"));
    assert!(matches!(wrong("k\tv\n"), FormError::Table(5)), "a record before the first table");
    assert!(matches!(wrong("in c\n"), FormError::Table(5)));
    assert!(matches!(wrong("in b\nk\tv\nin a\n"), FormError::Table(7)), "against the order");
    assert!(matches!(wrong("in a\nin a\n"), FormError::Table(6)), "twice");
    assert!(matches!(wrong("in a\n"), FormError::Cut(5)));
    // A file that names no tables has no such lines.
    assert!(matches!(read(text(b"quipu-export 1\nin a\n")), Err(FormError::NoTab(2))));
    let strange = b"quipu-export 2\ntables 1\n\\x00\\xff\n";
    assert!(TextReader::new(&strange[..], 25_000).tables().is_err());
}
