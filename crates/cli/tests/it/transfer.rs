//! Records out of pools and in again, through the library: the document's example, mistakes in files, and
//! what an import keeps when it fails.

mod escape;
mod forms;
mod hostile;
mod tables;

use quipu::{Options, Store};
use quipu_cli::transfer::{
    DebianReader, Form, FormError, ImportCause, JsonlReader, Records, Writer, export, import,
};
use std::collections::BTreeMap;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Key, value and line of each record.
type Read = Result<Vec<(Vec<u8>, Vec<u8>, u64)>, FormError>;

fn store(folder: &tempfile::TempDir, name: &str) -> Store {
    let options = Options::new().size(4 << 20).zone_size(64 << 10);
    Store::create(folder.path().join(name), &options).unwrap()
}

fn exported(store: &Store) -> Vec<u8> {
    exported_as(store, Form::Jsonl)
}

fn exported_as(store: &Store, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    export(store, None, Vec::new(), form, &mut out, &|_, _| {}).unwrap();
    out
}

fn written(pairs: &Pairs) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, Form::Jsonl, &[]);
    pairs.iter().for_each(|(key, value)| writer.record(key, value, None).unwrap());
    writer.finish(true).unwrap();
    out
}

fn read(mut records: impl Records) -> Read {
    let (mut key, mut value, mut all) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(line) = records.next(&mut key, &mut value)? {
        all.push((key.clone(), value.clone(), line));
    }
    assert!(records.next(&mut key, &mut value)?.is_none(), "the end stays the end");
    Ok(all)
}

fn jsonl(bytes: &[u8]) -> JsonlReader<&[u8]> {
    JsonlReader::new(bytes, 25_000)
}

/// The fault of bytes that are read as JSON lines.
fn refusal(bytes: &[u8]) -> FormError {
    read(jsonl(bytes)).unwrap_err()
}

/// Whether a fault names this line, and says this of it.
fn names(error: &FormError, number: u64, said: &str) -> bool {
    matches!(error, FormError::Line { line, what } if *line == number && what.contains(said))
}

#[test]
fn times_of_expiry_go_out_and_in() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (store(&folder, "from"), store(&folder, "to"));
    let far = 1 << 50;
    from.client().put_until(b"session", b"open", far).unwrap();
    from.client().put(b"stays", b"here").unwrap();
    from.client().put_until(b"gone", b"long ago", 5).unwrap();
    let file = exported(&from);
    let text = String::from_utf8(file.clone()).unwrap();
    let session = format!("\n{{\"key\":\"session\",\"value\":\"open\",\"expires\":{far}}}\n");
    let others = "{\"key\":\"stays\",\"value\":\"here\"}\n{\"end\":{\"records\":2,";
    assert!(text.contains(&(session + others)), "{text}");
    import(&to, None, &mut jsonl(&file), &|_| {}).unwrap();
    assert_eq!(to.client().expiry(b"session").unwrap(), Some(quipu::Expiry::At(far)));
    assert_eq!(to.client().expiry(b"stays").unwrap(), Some(quipu::Expiry::Never));
    assert_eq!(exported(&to), file);
    for wrong in ["", "-5", "1.5", "\"5\"", "99999999999999999999", "5 5"] {
        let file = format!("{{\"quipu_export\":1}}\n{{\"key\":\"a\",\"value\":\"b\",\"expires\":{wrong}}}\n");
        let found = refusal(file.as_bytes());
        assert!(names(&found, 2, "is no record"), "{wrong:?}: {found}");
    }
}

/// A record that does not prove itself is named and left out; the file says that it is incomplete, and so
/// does whoever imports it.
#[test]
fn an_export_of_a_damaged_pool_says_so_and_has_all_that_proves_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("from");
    // A design that reads no records at open.
    let design = Some(quipu::Design::FLATSTORE_PH);
    let options = Options::new().design(design).size(4 << 20).zone_size(64 << 10);
    let from = Store::create(&path, &options).unwrap();
    let pairs: Pairs = (0..700).map(|n| (format!("key {n:03}").into(), vec![n as u8; 100])).collect();
    pairs.iter().for_each(|(key, value)| from.client().put(key, value).unwrap());
    from.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // A value, and a key, which makes it another's.
    for key in ["key 123", "key 400"] {
        let at = bytes.windows(7).position(|window| window == key.as_bytes()).unwrap();
        bytes[at + if key == "key 400" { 0 } else { 50 }] ^= 4;
    }
    std::fs::write(&path, &bytes).unwrap();
    let store_of = |verify_reads| Store::open(&path, &Options::new().verify_reads(verify_reads)).unwrap();
    assert!(store_of(false).client().get(b"key 123").is_ok_and(|value| value.unwrap() != [123; 100]));

    let from = store_of(true);
    let mut file = Vec::new();
    let done = export(&from, None, Vec::new(), Form::Jsonl, &mut file, &|_, _| {}).unwrap();
    let named: Vec<_> = done.damage.iter().map(|place| place.what.as_str()).collect();
    assert_eq!((done.records, named.len()), (698, 2), "{named:?}");
    assert!(named.iter().any(|what| what.ends_with("the key key 123")), "{named:?}");
    assert!(done.damage.iter().all(|place| place.offset != 0));
    let text = String::from_utf8(file.clone()).unwrap();
    assert!(text.lines().last().unwrap().starts_with("{\"incomplete\":{\"records\":698,"));
    let to = store(&folder, "to");
    let error = import(&to, None, &mut jsonl(&file), &|_| {}).unwrap_err();
    assert!(
        matches!(error.cause, ImportCause::Form(FormError::Incomplete { line: 700, records: 698 })),
        "{error}"
    );
    assert_eq!((error.imported, to.stats().records), (698, 698), "they are kept");
    let client = from.client();
    assert!(matches!(client.get(b"key 123"), Err(quipu::Error::Damaged(_))));
    assert!(matches!(client.get(b"key 400"), Err(quipu::Error::Damaged(_))), "not absent");
    assert_eq!(client.get(b"key 124").unwrap().unwrap(), [124; 100]);
}

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/EXPORT.md")).unwrap()
}

/// The example of docs/EXPORT.md.
fn example() -> (Pairs, Vec<u8>) {
    let pairs: [(&str, &str); 4] = [
        ("llama", "wool"),
        ("alpaca", "finer wool"),
        ("knot\tkind", "long\nfigure-eight\nsingle"),
        ("ñandú", "no wool, 羽毛 \\o/"),
    ];
    let mut pairs: Pairs = pairs.map(|(key, value)| (key.into(), value.into())).into();
    pairs.insert(vec![0, 0xff], Vec::new());
    let page = page();
    (pairs, block(&page, "json").as_bytes().to_vec())
}

/// The first block of a page that is of this kind.
fn block<'p>(page: &'p str, kind: &str) -> &'p str {
    page.split(&format!("```{kind}\n")).nth(1).unwrap().split("```").next().unwrap()
}

#[test]
fn the_document_shows_what_the_program_writes_and_reads() {
    let (pairs, whole) = example();
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "pool");
    let mut client = store.client();
    pairs.iter().for_each(|(key, value)| client.put(key, value).unwrap());
    let tsv = String::from_utf8(exported_as(&store, Form::Tsv)).unwrap();
    assert_eq!(tsv, block(&page(), "tsv"));
    let shown = String::from_utf8(whole.clone()).unwrap();
    assert_eq!(shown.lines().count(), 7);
    assert_eq!(String::from_utf8(exported(&store)).unwrap(), shown);
    let found: Pairs = read(jsonl(&whole)).unwrap().into_iter().map(|(key, value, _)| (key, value)).collect();
    assert_eq!(found, pairs);
}

#[test]
fn any_bytes_come_back_and_the_files_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<u8> = (0..=255).collect();
    let mut pairs = Pairs::new();
    for byte in 0..=255u8 {
        pairs.insert(vec![byte], vec![byte; usize::from(byte)]);
        pairs.insert([&all[..], &[byte]].concat(), all.iter().rev().copied().collect());
    }
    pairs.insert(b"empty".to_vec(), Vec::new());
    pairs.insert(b"crlf\r\n".to_vec(), b"a\r\nb\r\n".to_vec());
    pairs.insert("ключ".into(), "значение\u{2028}\u{85}".into());
    pairs.insert(b"{\"end\":{\"records\":3,\"xxh3\":\"0000000000000000\"}}".to_vec(), b"end".to_vec());
    pairs.insert(b"{\"quipu_export\":1}".to_vec(), b"\\u0041\\".to_vec());
    pairs.insert(vec![b'k'; 2000], vec![0xc2; 16_000]);
    let first = store(&folder, "first");
    let mut client = first.client();
    // Backwards, and twice, so that neither order nor old versions show.
    for round in 0..2 {
        for (key, value) in pairs.iter().rev() {
            client.put(key, if round == 0 { b"old" } else { value }).unwrap();
        }
    }
    let file = exported(&first);
    assert_eq!(file, written(&pairs), "an export is sorted");
    let second = store(&folder, "second");
    let imported = import(&second, None, &mut jsonl(&file), &|_| {}).unwrap();
    assert_eq!((imported.records, imported.bytes), (pairs.len() as u64, file.len() as u64));
    assert!(imported.proved);
    let client = second.client();
    for (key, value) in &pairs {
        assert_eq!(client.get(key).unwrap().as_ref(), Some(value), "{}", key.escape_ascii());
    }
    assert!(exported(&second) == file, "export, import and export again gives the same bytes");
}

#[test]
fn an_empty_pool_has_an_export() {
    let file = written(&Pairs::new());
    assert!(file.starts_with(b"{\"quipu_export\":1}\n{\"end\":{\"records\":0,"));
    assert!(read(jsonl(&file)).unwrap().is_empty());
}

#[test]
fn every_cut_is_noticed() {
    let (_, file) = example();
    // Bytes after which a first line is known for one.
    let known = "{\"quipu_export\":".len();
    for len in 0..file.len() {
        let found = refusal(&file[..len]);
        match found {
            FormError::Cut(0) => assert_eq!(len, 0),
            FormError::Cut(_) => assert!(len >= known, "{len} bytes"),
            _ => assert!(len < known && found.is_foreign(), "{len} bytes: {found}"),
        }
    }
}

/// From the beginning, and from the midst.
#[test]
fn every_lost_or_moved_line_is_noticed() {
    let (_, file) = example();
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..lines.len() {
        let lost = refusal(&[&lines[..at], &lines[at + 1..]].concat().concat());
        match at {
            0 => assert!(names(&lost, 6, "first line is missing"), "{lost}"),
            6 => assert!(matches!(lost, FormError::Cut(6))),
            _ => assert!(names(&lost, 6, "does not prove the 4 records before it"), "{lost}"),
        }
        let twice = refusal(&[&lines[..=at], &lines[at..]].concat().concat());
        assert!(names(&twice, if at == 0 { 2 } else { 8 }, ""), "{twice}");
        let mut moved = lines.clone();
        moved.swap(at, (at + 1) % lines.len());
        assert!(read(jsonl(&moved.concat())).is_err(), "line {at}");
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let (_, file) = example();
    for at in 0..file.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut changed = file.clone();
            changed[at] ^= bit;
            assert!(read(jsonl(&changed)).is_err(), "byte {at} with bit {bit:#x}");
        }
    }
}

#[test]
fn mistakes_name_their_line() {
    let first = "{\"quipu_export\":1}\n{\"key\":\"a\",\"value\":\"b\"}\n";
    let wrong = |body: &str, said| {
        let found = refusal(format!("{first}{body}").as_bytes());
        assert!(names(&found, 3, said), "{body}: {found}");
    };
    wrong("no object\n", "is no record: expected ident; each line is an object");
    wrong("{\"key\":\"c\",\"value\":\"d\"}\r\n", "carriage return");
    wrong("\n", "is no record: EOF");
    wrong(&"x".repeat(5_000_000), "ends no record within");
    let checksum = twox_hash::XxHash3_64::oneshot(first.as_bytes());
    let right = format!("{{\"end\":{{\"records\":1,\"xxh3\":\"{checksum:016x}\"}}}}\n");
    assert_eq!(read(jsonl(format!("{first}{right}").as_bytes())).unwrap().len(), 1);
    let unproved = format!("does not prove the 1 record before it, whose checksum is {checksum:016x}; ");
    for end in [
        "{\"end\":{}}\n".to_owned(),
        "{\"end\":7}\n".to_owned(),
        right.replace("1,", "2,"),
        right.replace("1,", "-1,"),
        right.replace(":1", ": 1"),
        right.replace("h3\":\"", "h3\":\"0"),
        right.replace(&format!("{checksum:016x}"), "0123456789abcdef"),
        right.replace("}}\n", "}} \n"),
        right.replace("}}\n", ",\"again\":1}}\n"),
        right.replace("end", "incomplete").replace("1,", "0,"),
    ] {
        wrong(&end, &unproved);
    }
    assert!(matches!(refusal(first.as_bytes()), FormError::Cut(2)));
    assert!(matches!(refusal(format!("{first}{}", right.trim_end()).as_bytes()), FormError::Cut(3)));
    let (_, mut file) = example();
    file.push(b'\n');
    assert!(names(&refusal(&file), 8, "stands behind the last"));
    assert!(names(&refusal(b"{\"quipu_export\":2,\"more\":[]}\n"), 1, "version 2; "));
    assert!(names(&refusal(b"{\"quipu_export\":1}\r\n"), 1, "carriage return"));
    let foreign = ["", "\n", "quipu-export 1\n", "{\"quipu_export\":one}\n", "{\"quipu_export\":\"1\"}\n"];
    for foreign in foreign.iter().map(|text| text.as_bytes()).chain([&[b'x'; 1000][..]]) {
        assert!(refusal(foreign).is_foreign());
    }
}

/// A first line in the midst, as where two files were joined.
#[test]
fn a_file_without_first_and_last_line_is_read_and_not_called_proved() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "pool");
    let lines = "{\"key\":\"a\",\"value\":\"b\"}\n{\"key\":\"c\",\"value\":\"d\"}\n";
    let imported = import(&store, None, &mut jsonl(lines.as_bytes()), &|_| {}).unwrap();
    assert_eq!((imported.records, imported.proved), (2, false));
    let whole = String::from_utf8(exported(&store)).unwrap();
    assert!(import(&store, None, &mut jsonl(whole.as_bytes()), &|_| {}).unwrap().proved);
    let marked = format!("\u{feff}{whole}");
    assert!(import(&store, None, &mut jsonl(marked.as_bytes()), &|_| {}).unwrap().proved);
    let joined = refusal(format!("{lines}{whole}").as_bytes());
    assert!(names(&joined, 3, "unknown field `quipu_export`"), "{joined}");
    let joined = refusal(format!("{whole}{whole}").as_bytes());
    assert!(names(&joined, 5, "stands behind the last"), "{joined}");
}

#[test]
fn what_stands_before_a_mistake_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "pool");
    let records: Pairs = (0..5000).map(|n| (format!("k{n:05}").into_bytes(), b"v".to_vec())).collect();
    let whole = String::from_utf8(written(&records)).unwrap();
    let broken = whole.replace("k04000\",\"value", "k04000\",\"valve");
    let error = import(&store, None, &mut jsonl(broken.as_bytes()), &|_| {}).unwrap_err();
    assert!(
        matches!(&error.cause, ImportCause::Form(fault) if names(fault, 4002, "unknown field `valve`")),
        "{error}"
    );
    assert_eq!((error.imported, store.stats().records), (4000, 4000));

    // An empty key is for the store to refuse; the records before it in its batch are put.
    let broken = whole.replace("k04500", "");
    let error = import(&store, None, &mut jsonl(broken.as_bytes()), &|_| {}).unwrap_err();
    assert!(matches!(
        error.cause,
        ImportCause::Store { line: 4502, source: quipu::Error::KeyEmpty { .. }, .. }
    ));
    assert_eq!((error.imported, store.stats().records), (4500, 4500));
    import(&store, None, &mut jsonl(whole.as_bytes()), &|_| {}).unwrap();
    assert_eq!(exported(&store), whole.as_bytes());
}

#[test]
fn a_full_pool_keeps_the_first_records() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "pool");
    let records: Pairs = (0..1000u32).map(|n| (format!("k{n:05}").into_bytes(), vec![b'v'; 8000])).collect();
    let file = written(&records);
    let error = import(&store, None, &mut jsonl(&file), &|_| {}).unwrap_err();
    let ImportCause::Store { line, source: quipu::Error::PoolFull { .. }, .. } = error.cause else {
        panic!("{error:?}");
    };
    assert!((200..600).contains(&error.imported) && line == error.imported + 2, "{error:?}");
    let client = store.client();
    for (key, value) in records.iter().take(error.imported as usize) {
        assert_eq!(client.get(key).unwrap().as_ref(), Some(value));
    }
}

fn debian(text: &[u8], fields: &str) -> Read {
    read(DebianReader::new(text, 200, fields.split(',').map(str::to_owned).collect()))
}

#[test]
fn stanzas_are_records() {
    let file =
        b"\n\nPackage: knot\nVersion: 1:2-3\nDescription: ties\n a: b\n .\n more\n\n \t\r\npackage:cord\r\n\
                 VERSION:   4\r\n\r\nVersion: 5\nPackage: cord";
    let found = debian(file, "Package,Version").unwrap();
    let expected: [(&[u8], &[u8], u64); 3] = [
        (b"knot:1:2-3", b"Package: knot\nVersion: 1:2-3\nDescription: ties\n a: b\n .\n more\n", 3),
        (b"cord:4", b"package:cord\r\nVERSION:   4\r\n", 11),
        (b"cord:5", b"Version: 5\nPackage: cord", 14),
    ];
    assert_eq!(found, expected.map(|(key, value, line)| (key.to_vec(), value.to_vec(), line)));
    assert!(debian(b"\n\n", "Package").unwrap().is_empty());
}

#[test]
fn stanzas_that_would_be_lost_are_named() {
    let wrong = |text: &[u8], fields| debian(text, fields).unwrap_err();
    let twice = wrong(b"Package: a\n\nPackage: b\n\nPackage: a\n", "Package");
    assert!(names(&twice, 5, "another stanza with the key a; "), "{twice}");
    let missing = wrong(b"Package: a\nVersion:\n 1\n", "Package,Version");
    assert!(names(&missing, 1, "without a field Version; "), "{missing}");
    assert!(wrong(b"\x04\x22\x4d\x18 lz4\n", "Package").is_foreign());
    assert!(names(&wrong(b"Package: a\nno field\n", "Package"), 2, "neither a field"));
    assert!(names(&wrong(b" indented: 1\n", "Package"), 1, "neither a field"));
    let long = ["Package: a\n", &" more\n".repeat(100)].concat();
    assert!(names(&wrong(long.as_bytes(), "Package"), 33, "ends no record within 200 bytes"));
}

/// A seeded sample of what the fuzz target `import` does, of bytes and words that matter to one form or the
/// other.
#[test]
fn no_file_misleads_the_readers() {
    const BYTES: &[u8] = b"\t\t\n\n\\\\xnrtu01af \r::kk{}\"\",\x00\x7f\xc2\x80\xa3\xff";
    const WORDS: [&str; 12] = [
        "{\"key\":\"",
        "\",\"value\":\"",
        "\",\"table\":\"k",
        "\"}\n",
        "{\"key_hex\":\"",
        "\",\"value_hex\":\"",
        "\",\"expires\":5,\"table\":\"r",
        "{\"end\":{\"records\":1,\"xxh3\":\"",
        "{\"quipu_export\":1}\n",
        "{\"key\":\"a\",\"value\":\"b\"}\n",
        "{\"table\":\"r\",\"key\":\"a\",\"value\":\"b\"}\n",
        "\"",
    ];
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % below
    };
    for round in 0..20_000 {
        let (len, mut data) = (draw(60), Vec::new());
        while data.len() < len {
            match draw(8) {
                0..4 if round % 2 == 0 => data.extend_from_slice(WORDS[draw(WORDS.len())].as_bytes()),
                _ => data.push(BYTES[draw(BYTES.len())]),
            }
        }
        hostile::survive(&data);
    }
}
