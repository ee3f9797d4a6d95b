//! Tables out of pools and in again, through the library: the document's example, one state of all of them,
//! and mistakes in lists.

use super::{Pairs, jsonl, names, page, read, refusal};
use quipu::{Design, Options, Store};
use quipu_cli::transfer::{
    ExportError, Form, FormError, ImportCause, JsonlReader, Records, Writer, export, import,
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
    let file = exported(&from, None, Form::Jsonl);
    let page = page();
    let shown = page.split("```json\n").nth(2).unwrap().split("```").next().unwrap();
    assert_eq!(String::from_utf8(file.clone()).unwrap(), shown);

    let to = store(&folder, "to", Design::XP);
    let imported = import(&to, None, &mut jsonl(&file), &|_| {}).unwrap();
    assert_eq!(
        (imported.records, imported.created.as_slice()),
        (3, &["herd", "high plains"].map(str::to_owned)[..])
    );
    assert_eq!(exported(&to, None, Form::Jsonl), file);
    let again = import(&to, None, &mut jsonl(&file), &|_| {}).unwrap();
    assert!(again.created.is_empty());
}

#[test]
fn every_cut_and_every_changed_byte_of_an_export_with_tables_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let file = exported(&herds(&folder), None, Form::Jsonl);
    for len in "{\"quipu_export\":".len()..file.len() {
        assert!(matches!(read(jsonl(&file[..len])), Err(FormError::Cut(_))), "{len} bytes");
    }
    for at in 0..file.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut changed = file.clone();
            changed[at] ^= bit;
            assert!(read(jsonl(&changed)).is_err(), "byte {at} with bit {bit:#x}");
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
    let before = exported(&from, None, Form::Jsonl);
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
    export(&from, None, Vec::new(), Form::Jsonl, &mut file, &meddle).unwrap();
    assert!(calls.get() > 3);
    assert!(file == before, "a snapshot of the beginning");
    assert!(exported(&from, None, Form::Jsonl) != before);
}

#[test]
fn an_export_of_the_default_table_alone_names_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let from = herds(&folder);
    let alone = exported(&from, Some("default"), Form::Jsonl);
    let text = String::from_utf8(alone.clone()).unwrap();
    let lines =
        "{\"quipu_export\":1}\n{\"key\":\"knot\",\"value\":\"figure-eight\"}\n{\"end\":{\"records\":1,";
    assert!(text.starts_with(lines), "{text}");
    let to = store(&folder, "to", Design::QUIPU);
    import(&to, None, &mut jsonl(&alone), &|_| {}).unwrap();
    assert_eq!(exported(&to, None, Form::Jsonl), alone);
    // And in a pool with tables it goes where it is told to.
    let imported = import(&from, Some("knots"), &mut jsonl(&alone), &|_| {}).unwrap();
    assert_eq!(imported.created, ["knots"]);
    assert_eq!(contents(&from, "knots"), contents(&from, "default"));
}

#[test]
fn one_table_is_chosen_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let from = herds(&folder);
    let whole = exported(&from, None, Form::Jsonl);
    // A program may leave out the first and the last line, and then nothing lists the tables.
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for (kind, file) in [("whole", &whole), ("bare", &lines[1..lines.len() - 1].concat())] {
        // A pool without tables takes one, too.
        for design in [Design::XP, Design::QUIPU] {
            let to = store(&folder, &format!("{design} {kind}"), design);
            let refused = import(&to, Some("heard"), &mut jsonl(file), &|_| {}).unwrap_err();
            assert!(matches!(refused.cause, ImportCause::Tables(_)) && refused.is_refusal());
            let imported = import(&to, Some("herd"), &mut jsonl(file), &|_| {}).unwrap();
            assert_eq!((imported.records, imported.passed_over, to.stats().records), (2, 1, 2));
            assert_eq!(imported.proved, kind == "whole");
            if design == Design::XP {
                assert_eq!(contents(&to, "herd"), contents(&from, "herd"));
                assert!(to.tables().unwrap().len() == 2, "no other table is created");
            }
        }
        let to = store(&folder, &format!("refused {kind}"), Design::QUIPU);
        let refused = import(&to, None, &mut jsonl(file), &|_| {}).unwrap_err();
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
    let imported = import(&to, None, &mut jsonl(file.as_bytes()), &|_| {}).unwrap();
    assert_eq!((imported.records, imported.created.len()), (90, 2));
    for table in ["default", "t1", "t2"] {
        assert_eq!(contents(&to, table).len(), 30, "{table}");
    }
    let long = format!("{{\"key\":\"k\",\"value\":\"\",\"table\":\"{}\"}}\n", "t".repeat(129));
    assert!(names(&refusal(long.as_bytes()), 1, "1 to 128 bytes"));
}

#[test]
fn mistakes_in_a_list_of_tables_name_their_line() {
    let wrong = |list: &str, said| {
        let found = refusal(format!("{{\"quipu_export\":1,\"tables\":{list}}}\n").as_bytes());
        assert!(names(&found, 1, said), "{list}: {found}");
    };
    for list in ["", "5", "\"a\"", "[5]", "[\"a\"", "{\"a\":1}", "null"] {
        wrong(list, "is no record: ");
    }
    wrong("[\"\"]", "1 to 128 bytes");
    wrong(&format!("[\"a\",\"{}\"]", "t".repeat(129)), "1 to 128 bytes");
    let strange = b"{\"quipu_export\":1,\"tables\":[\"\x00\xff\"]}\n";
    assert!(names(&refusal(strange), 1, "is no record: "));

    let file =
        |first: &str, lines: &str| refusal(format!("{{\"quipu_export\":1{first}}}\n{lines}").as_bytes());
    let (plain, in_c) =
        ("{\"key\":\"k\",\"value\":\"v\"}\n", "{\"table\":\"c\",\"key\":\"k\",\"value\":\"v\"}\n");
    let in_b = in_c.replace('c', "b");
    let two = ",\"tables\":[\"a\",\"b\"]";
    assert!(names(&file(two, plain), 2, "of no table that the first line lists"), "it must name one");
    assert!(names(&file(two, in_c), 2, "of no table that the first line lists"));
    assert!(names(&file(two, &format!("{in_b}{in_b}{in_c}")), 4, "of no table that the first line lists"));
    assert!(names(&file("", in_c), 2, "of no table that the first line lists"), "it has no list");
    assert!(matches!(file(two, &format!("{in_b}{in_b}")), FormError::Cut(3)));
}

/// As many as a pool has, with the longest names, each character of which is escaped.
#[test]
fn the_longest_list_of_tables_is_read_and_tables_without_records_are_created() {
    let octal = |n: u16| format!("{n:04o}").bytes().map(|digit| char::from(digit - 0x20)).collect::<String>();
    let names: Vec<String> = (0..4096).map(|n| octal(n) + &"\u{1}".repeat(124)).collect();
    let mut file = Vec::new();
    Writer::new(&mut file, Form::Jsonl, &names).finish(true).unwrap();
    let mut reader = JsonlReader::new(&file[..], 0);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    assert!(reader.next(&mut key, &mut value).unwrap().is_none() && reader.is_proved());
    assert_eq!(reader.tables(), names);

    let folder = tempfile::tempdir().unwrap();
    let to = store(&folder, "to", Design::XP);
    let mut file = Vec::new();
    Writer::new(&mut file, Form::Jsonl, &names[..2]).finish(true).unwrap();
    assert_eq!(import(&to, None, &mut jsonl(&file), &|_| {}).unwrap().created, names[..2]);
}
