//! Records out of pools and in again, through the library: the document's example, mistakes in files, and
//! what an import keeps when it fails.

mod forms;
mod hostile;
mod tables;

use quipu::{Options, Store};
use quipu_cli::transfer::{
    DebianReader, Form, FormError, ImportCause, Records, TextReader, Writer, export, import,
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
    exported_as(store, Form::Quipu)
}

fn exported_as(store: &Store, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    export(store, None, Vec::new(), form, &mut out, &|_, _| {}).unwrap();
    out
}

fn written(pairs: &Pairs) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Form::Quipu, &[]);
    pairs.iter().for_each(|(key, value)| writer.record(key, value, None));
    writer.finish(true).unwrap().out
}

fn read(mut records: impl Records) -> Read {
    let (mut key, mut value, mut all) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(line) = records.next(&mut key, &mut value)? {
        all.push((key.clone(), value.clone(), line));
    }
    assert!(records.next(&mut key, &mut value)?.is_none(), "the end stays the end");
    Ok(all)
}

fn text(bytes: &[u8]) -> TextReader<&[u8]> {
    TextReader::new(bytes, 25_000)
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
    assert!(text.contains(&format!("\nsession\topen\t{far}\nstays\there\nend 2 ")), "{text}");
    import(&to, None, &mut TextReader::new(&file[..], 25_000), &|_| {}).unwrap();
    assert_eq!(to.client().expiry(b"session").unwrap(), Some(quipu::Expiry::At(far)));
    assert_eq!(to.client().expiry(b"stays").unwrap(), Some(quipu::Expiry::Never));
    assert_eq!(exported(&to), file);
    for wrong in ["", "-5", "1.5", "5 ", "99999999999999999999", "5\t5"] {
        let file = format!("quipu-export 1\nkey\tvalue\t{wrong}\n");
        let found = read(TextReader::new(file.as_bytes(), 25_000));
        assert!(matches!(found, Err(FormError::Expiry(2))), "{wrong:?}: {found:?}");
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
    let done = export(&from, None, Vec::new(), Form::Quipu, &mut file, &|_, _| {}).unwrap();
    let named: Vec<_> = done.damage.iter().map(|place| place.what.as_str()).collect();
    assert_eq!((done.records, named.len()), (698, 2), "{named:?}");
    assert!(named.iter().any(|what| what.ends_with("the key key 123")), "{named:?}");
    assert!(done.damage.iter().all(|place| place.offset != 0));
    let text = String::from_utf8(file.clone()).unwrap();
    assert!(text.lines().last().unwrap().starts_with("incomplete 698 "));
    let to = store(&folder, "to");
    let error = import(&to, None, &mut TextReader::new(&file[..], 25_000), &|_| {}).unwrap_err();
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
    (pairs, block(&page, "text").as_bytes().to_vec())
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
    for (kind, form) in [("tsv", Form::Tsv), ("json", Form::Jsonl)] {
        assert_eq!(String::from_utf8(exported_as(&store, form)).unwrap(), block(&page(), kind));
    }
    let shown = String::from_utf8(whole.clone()).unwrap();
    assert_eq!(shown.lines().count(), 7);
    assert_eq!(String::from_utf8(exported(&store)).unwrap(), shown);
    let found: Pairs = read(text(&whole)).unwrap().into_iter().map(|(key, value, _)| (key, value)).collect();
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
    pairs.insert(b"end 3 0000000000000000".to_vec(), b"end".to_vec());
    pairs.insert(b"quipu-export 1".to_vec(), b"\\x41\\".to_vec());
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
    let imported = import(&second, None, &mut text(&file), &|_| {}).unwrap();
    assert_eq!((imported.records, imported.bytes), (pairs.len() as u64, file.len() as u64));
    let client = second.client();
    for (key, value) in &pairs {
        assert_eq!(client.get(key).unwrap().as_ref(), Some(value), "{}", key.escape_ascii());
    }
    assert!(exported(&second) == file, "export, import and export again gives the same bytes");
}

#[test]
fn an_empty_pool_has_an_export() {
    let file = written(&Pairs::new());
    assert!(file.starts_with(b"quipu-export 1\nend 0 "));
    assert!(read(text(&file)).unwrap().is_empty());
}

#[test]
fn every_cut_is_noticed() {
    let (_, file) = example();
    for len in 0..file.len() {
        match read(text(&file[..len])) {
            Err(FormError::Cut(_)) => assert!(len >= 15),
            Err(FormError::Foreign) => assert!(len < 15, "{len} bytes"),
            other => panic!("{len} bytes: {other:?}"),
        }
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let (_, file) = example();
    for at in 0..file.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut changed = file.clone();
            changed[at] ^= bit;
            // The digits of the checksum may be of either case.
            let same = at >= file.len() - 17 && changed[at].to_ascii_lowercase() == file[at];
            assert_eq!(read(text(&changed)).is_ok(), same, "byte {at} with bit {bit:#x}");
        }
    }
}

#[test]
fn mistakes_name_their_line() {
    let read = |body: &str| read(text(format!("quipu-export 1\na\tb\n{body}").as_bytes())).unwrap_err();
    assert!(matches!(read("no tab\n"), FormError::NoTab(3)));
    assert!(matches!(read("c\td\r\n"), FormError::CarriageReturn(3)));
    assert!(matches!(read("c\td\te\n"), FormError::Expiry(3)));
    assert!(matches!(read("c\t\u{1b}\n"), FormError::Control { line: 3, column: 3, found: 0x1b }));
    assert!(matches!(read("c\\q\td\n"), FormError::Escape { line: 3, column: 2 }));
    assert!(matches!(read("c\td\\x1\n"), FormError::Escape { line: 3, column: 4 }));
    assert!(matches!(read("end\n"), FormError::End(3)));
    assert!(matches!(read("end 1 123\n"), FormError::End(3)));
    assert!(matches!(read("end 1 0123456789abcdef again\n"), FormError::End(3)));
    assert!(matches!(read("end 2 0123456789abcdef\n"), FormError::Count { line: 3, said: 2, found: 1 }));
    assert!(matches!(read("end 1 0123456789abcdef\n"), FormError::Checksum { line: 3, .. }));
    assert!(matches!(read(&"x".repeat(200_000)), FormError::TooLong { line: 3, .. }));
    let (_, mut file) = example();
    file.push(b'\n');
    assert!(matches!(refusal(&file), FormError::Surplus(8)));
    assert!(matches!(refusal(b"quipu-export 3\n"), FormError::Newer { version } if version == "3"));
    assert!(matches!(refusal(b"quipu-export 1\r\n"), FormError::CarriageReturn(1)));
    for foreign in [&b""[..], b"\n", b"quipu-export 1", b"quipu-export one\n", &[b'x'; 1000]] {
        assert!(refusal(foreign).is_foreign());
    }
}

fn refusal(bytes: &[u8]) -> FormError {
    read(text(bytes)).unwrap_err()
}

#[test]
fn what_stands_before_a_mistake_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "pool");
    let records: Pairs = (0..5000).map(|n| (format!("k{n:05}").into_bytes(), b"v".to_vec())).collect();
    let whole = String::from_utf8(written(&records)).unwrap();
    let broken = whole.replace("k04000\tv", "k04000\t\\v");
    let error = import(&store, None, &mut text(broken.as_bytes()), &|_| {}).unwrap_err();
    assert!(matches!(error.cause, ImportCause::Form(FormError::Escape { line: 4002, column: 8 })));
    assert_eq!((error.imported, store.stats().records), (4000, 4000));

    // An empty key is for the store to refuse; the records before it in its batch are put.
    let broken = whole.replace("k04500\tv", "\tv");
    let error = import(&store, None, &mut text(broken.as_bytes()), &|_| {}).unwrap_err();
    assert!(matches!(
        error.cause,
        ImportCause::Store { line: 4502, source: quipu::Error::KeyEmpty { .. }, .. }
    ));
    assert_eq!((error.imported, store.stats().records), (4500, 4500));
    import(&store, None, &mut text(whole.as_bytes()), &|_| {}).unwrap();
    assert_eq!(exported(&store), whole.as_bytes());
}

#[test]
fn a_full_pool_keeps_the_first_records() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "pool");
    let records: Pairs = (0..1000u32).map(|n| (format!("k{n:05}").into_bytes(), vec![b'v'; 8000])).collect();
    let file = written(&records);
    let error = import(&store, None, &mut text(&file), &|_| {}).unwrap_err();
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
    assert!(matches!(twice, FormError::KeyTwice { line: 5, key } if key == "a"));
    let missing = wrong(b"Package: a\nVersion:\n 1\n", "Package,Version");
    assert!(matches!(missing, FormError::FieldMissing { line: 1, field } if field == "Version"));
    assert!(wrong(b"\x04\x22\x4d\x18 lz4\n", "Package").is_foreign());
    assert!(matches!(wrong(b"Package: a\nno field\n", "Package"), FormError::NoField(2)));
    assert!(matches!(wrong(b" indented: 1\n", "Package"), FormError::NoField(1)));
    let long = ["Package: a\n", &" more\n".repeat(100)].concat();
    assert!(matches!(wrong(long.as_bytes(), "Package"), FormError::TooLong { .. }));
}

/// A seeded sample of what the fuzz target `import` does, of bytes that matter to one form or the other.
#[test]
fn no_file_misleads_the_readers() {
    const BYTES: &[u8] = b"\t\t\n\n\\\\xnrt01af \r::kk\x00\x7f\xc2\x80\xa3\xffin tables";
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % below
    };
    for _ in 0..20_000 {
        let len = draw(60);
        let data: Vec<u8> = (0..len).map(|_| BYTES[draw(BYTES.len())]).collect();
        hostile::survive(&data);
    }
}
