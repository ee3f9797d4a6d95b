//! The promises of the readers for any file. Used by a seeded test and by a fuzzer.

use quipu_cli::transfer::{
    DebianReader, Form, FormError, JsonlReader, Records, TsvReader, Writer, escape, unescape,
};
use twox_hash::XxHash3_64;

/// The longest record that the readers are to take.
const LONGEST: u64 = 200;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn read(mut records: impl Records) -> (Pairs, Option<FormError>) {
    let (mut key, mut value, mut pairs) = (Vec::new(), Vec::new(), Pairs::new());
    loop {
        match records.next(&mut key, &mut value) {
            Ok(Some(_)) => pairs.push((key.clone(), value.clone())),
            Ok(None) => return (pairs, None),
            Err(error) => return (pairs, Some(error)),
        }
    }
}

fn read_as(form: Form, file: &[u8], longest: u64) -> (Pairs, Option<FormError>) {
    match form {
        Form::Tsv => read(TsvReader::new(file, longest)),
        Form::Jsonl => read(JsonlReader::new(file, longest)),
    }
}

fn written(pairs: &Pairs, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, form, &[]);
    pairs.iter().try_for_each(|(key, value)| writer.record(key, value, None)).expect("a vector takes it");
    writer.finish(true).expect("a vector takes it");
    out
}

/// Reads bytes between a first line and the last one that proves them.
fn survive_proved(first: &str, data: &[u8]) {
    let mut body = [first.as_bytes(), data].concat();
    if !body.ends_with(b"\n") {
        body.push(b'\n');
    }
    let mut reader = JsonlReader::new(&*body, LONGEST);
    let (mut key, mut value, mut records) = (Vec::new(), Vec::new(), 0);
    while let Ok(Some(_)) = reader.next(&mut key, &mut value) {
        records += 1;
        let named = reader.table().map(str::to_owned);
        assert_eq!(named.is_some(), !reader.tables().is_empty(), "each record has one, or none has");
        assert!(named.is_none_or(|named| reader.tables().contains(&named)));
    }
    assert!(!reader.is_proved(), "it has no last line");
    let lines = body.iter().filter(|byte| **byte == b'\n').count() - 1;
    let end =
        format!("{{\"end\":{{\"records\":{lines},\"xxh3\":\"{:016x}\"}}}}\n", XxHash3_64::oneshot(&body));
    body.extend_from_slice(end.as_bytes());
    let (pairs, error) = read_as(Form::Jsonl, &body, LONGEST);
    assert_eq!(pairs.len(), records);
    assert_eq!(error.is_none(), records == lines, "{error:?}");
}

/// Reads bytes in a form, as they are; the records understood are written, and read as the same.
fn survive_as(form: Form, data: &[u8]) -> (Pairs, Option<FormError>) {
    let (pairs, error) = read_as(form, data, LONGEST);
    let (found, again) = read_as(form, &written(&pairs, form), LONGEST * 6 + 512);
    assert!(found == pairs && again.is_none(), "{again:?}");
    (pairs, error)
}

/// Reads bytes as files of all forms, as they are and with lines that prove them; then writes parts of them
/// as records, and reads that.
pub fn survive(data: &[u8]) {
    survive_proved("{\"quipu_export\":1}\n", data);
    survive_proved("{\"quipu_export\":1,\"tables\":[\"k\",\"r\"]}\n", data);

    let (stanzas, error) = read(DebianReader::new(data, LONGEST, vec!["k".to_owned()]));
    let bytes: usize = stanzas.iter().map(|(_, stanza)| stanza.len()).sum();
    assert!(bytes <= data.len() && stanzas.iter().all(|(key, stanza)| key.len() < stanza.len()));
    assert!(error.is_some() || !stanzas.is_empty() || data.trim_ascii().is_empty());

    let pairs: Pairs = data
        .chunks(9)
        .map(|chunk| chunk.split_at(chunk.len() / 2))
        .map(|(k, v)| (k.into(), v.into()))
        .collect();
    for form in [Form::Tsv, Form::Jsonl] {
        survive_as(form, data);
        let (found, error) = survive_as(form, &written(&pairs, form));
        assert!(found == pairs && error.is_none(), "{error:?}");
    }
    let mut file = written(&pairs, Form::Jsonl);
    if let Some(place) = data.first() {
        let place = usize::from(*place) % file.len();
        assert!(read_as(Form::Jsonl, &file[..place], LONGEST).1.is_some(), "{place} of {} bytes", file.len());
        file[place] ^= 1;
        assert!(read_as(Form::Jsonl, &file, LONGEST).1.is_some(), "byte {place} is another");
    }

    let (mut line, mut back) = (Vec::new(), Vec::new());
    escape(data, &mut line);
    assert!(std::str::from_utf8(&line).is_ok_and(|line| !line.contains(char::is_control)));
    assert!(unescape(&line, (1, 1), &mut back).is_ok() && back == data);
}
