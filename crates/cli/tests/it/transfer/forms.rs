//! The forms `tsv` and `jsonl`: what they look like, any bytes out and in again, and mistakes with their
//! lines.

use super::{exported, exported_as, jsonl, names, read, store};
use quipu_cli::transfer::{Form, FormError, ImportCause, Records, TsvReader, import};

fn tsv(file: &[u8]) -> TsvReader<&[u8]> {
    TsvReader::new(file, 25_000)
}

#[test]
fn each_form_has_one_way_to_write_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "pool");
    let mut client = store.client();
    client.put(b"llama", b"wool").unwrap();
    client.put(b"tab\there", "羽毛\r\n\\".as_bytes()).unwrap();
    client.put(b"\x00\xff", b"").unwrap();
    client.put(b"\"quoted\"", b"\xfe").unwrap();
    client.put_until(b"session", b"open", 1 << 50).unwrap();
    let lines = |form| String::from_utf8(exported_as(&store, form)).unwrap();
    let expected =
        [r"\x00\xff	", r#""quoted"	\xfe"#, r"llama	wool", r"session	open", r"tab\there	羽毛\r\n\\"];
    assert_eq!(lines(Form::Tsv).lines().collect::<Vec<_>>(), expected);
    let expected = [
        r#"{"quipu_export":1}"#,
        r#"{"key_hex":"00ff","value":""}"#,
        r#"{"key":"\"quoted\"","value_hex":"fe"}"#,
        r#"{"key":"llama","value":"wool"}"#,
        r#"{"key":"session","value":"open","expires":1125899906842624}"#,
        r#"{"key":"tab\there","value":"羽毛\r\n\\"}"#,
        r#"{"end":{"records":5,"xxh3":"2debb8e84091c329"}}"#,
    ];
    assert_eq!(lines(Form::Jsonl).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn any_bytes_come_back_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let first = store(&folder, "first");
    let mut client = first.client();
    let mut state = 7u64;
    let mut byte = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    for number in 0..2000u32 {
        // Some are text, most are not; some values are empty, some expire.
        let mut key: Vec<u8> = (0..usize::from(byte() % 20)).map(|_| byte()).collect();
        key.extend_from_slice(format!("\t{number}").as_bytes());
        let value: Vec<u8> = (0..usize::from(byte() % 50)).map(|_| byte() & 0x7f).collect();
        if number.is_multiple_of(5) {
            client.put_until(&key, &value, (1 << 50) + u64::from(number)).unwrap();
        } else {
            client.put(&key, &value).unwrap();
        }
    }
    let (whole, lasting) = (exported(&first), exported_as(&first, Form::Tsv));
    let (jsonl_store, tsv_store) = (store(&folder, "jsonl"), store(&folder, "tsv"));
    import(&jsonl_store, None, &mut jsonl(&exported_as(&first, Form::Jsonl)), &|_| {}).unwrap();
    assert!(exported(&jsonl_store) == whole, "with the times of expiry");
    let imported = import(&tsv_store, None, &mut tsv(&lasting), &|_| {}).unwrap();
    assert_eq!((imported.records, imported.bytes), (2000, lasting.len() as u64));
    assert!(exported_as(&tsv_store, Form::Tsv) == lasting);
    assert_eq!(tsv_store.stats().records, 2000);
}

#[test]
fn other_programs_may_write_them_in_their_own_way() {
    let records = read(jsonl(
        b"{ \"value\" : \"w\\u006fol\", \"key\":\"\\ud83e\\udd99\" }\r\n{\"key_hex\":\"FFfe\",\"value_hex\":\"\",\"expires\":null}",
    ));
    let expected = vec![("🦙".into(), b"wool".to_vec(), 1), (vec![0xff, 0xfe], Vec::new(), 2)];
    assert_eq!(records.unwrap(), expected);
    let records = read(tsv(b"caf\xe9\t\\x41\n\t\n")).unwrap();
    assert_eq!(records[0], (b"caf\xe9".to_vec(), b"A".to_vec(), 1));
    assert!(read(tsv(b"")).unwrap().is_empty());
}

#[test]
fn mistakes_are_told_with_their_line() {
    let second = |line: &str| {
        let error =
            read(jsonl(format!("{{\"key\":\"a\",\"value\":\"b\"}}\n{line}\n").as_bytes())).unwrap_err();
        assert!(names(&error, 2, "is no record: "), "{line}: {error}");
        error.to_string()
    };
    let cases = [
        ("", "EOF"),
        ("llama", "expected"),
        ("[]", ""),
        (r#"{"key":"a"}"#, "no value"),
        (r#"{"value":"a"}"#, "no key"),
        (r#"{"key":"a","key_hex":"61","value":"b"}"#, "both key and key_hex"),
        (r#"{"key":"a","value_hex":"6"}"#, "value_hex"),
        (r#"{"key":"a","value_hex":"zz"}"#, "value_hex"),
        (r#"{"key":"a","value":1}"#, "integer"),
        (r#"{"key":"a","value":"b","expires":-1}"#, "-1"),
        (r#"{"key":"a","value":"b","ttl":5}"#, "unknown field `ttl`"),
        (r#"{"key":"a","key":"b","value":"c"}"#, "duplicate field `key`"),
        (r#"{"key":"a","value":"b"} x"#, "trailing"),
        (r#"{"key":"\ud800","value":"b"}"#, ""),
    ];
    for (line, what) in cases {
        assert!(second(line).contains(what), "{line}: {}", second(line));
    }
    let second = |line: &[u8]| read(tsv(&[b"a\tb\n", line].concat())).unwrap_err();
    for (line, said) in [
        (&b"\n"[..], "has no tab; "),
        (b"a\tb\tc\n", "has a second tab; "),
        (b"a\tb\r\n", "ends with a carriage return; "),
        (b"a\tb", "has no line feed at its end; "),
        (b"a\tC:\\path\n", "has at byte 5 an unknown escape; "),
        (b"a\t\x07\n", "has at byte 3 a bare control character; write it as \\x07"),
    ] {
        assert!(names(&second(line), 2, said), "{}", second(line));
    }
    let long = vec![b'x'; 5_000_000];
    for found in [read(tsv(&long)), read(jsonl(&long))] {
        assert!(names(&found.unwrap_err(), 1, "ends no record within "));
    }
    for foreign in [read(tsv(b"quipu-export 1\n")), read(jsonl(b"a\tb\n"))] {
        assert!(foreign.unwrap_err().is_foreign());
    }
}

#[test]
fn what_stands_before_a_mistake_is_kept_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "pool");
    let mut lines: String = (0..1500).map(|n| format!("{{\"key\":\"k{n:05}\",\"value\":\"v\"}}\n")).collect();
    lines.push_str("{\"key\":\"last\"}\n");
    let error = import(&store, None, &mut jsonl(lines.as_bytes()), &|_| {}).unwrap_err();
    assert!(matches!(&error.cause, ImportCause::Form(FormError::Line { line: 1501, .. })), "{error}");
    assert_eq!((error.imported, store.stats().records), (1500, 1500));
    let mut records = tsv(b"k\tv\n\tv\n");
    let error = import(&store, None, &mut records, &|_| {}).unwrap_err();
    assert!(matches!(error.cause, ImportCause::Store { line: 2, wanted: 1, .. }), "{error}");
    assert_eq!((error.imported, records.bytes()), (1, 7));
}
