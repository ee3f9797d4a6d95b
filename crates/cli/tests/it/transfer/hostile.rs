//! The promises of the readers for any file. Used by a seeded test and by a fuzzer.

use quipu_cli::transfer::{
    DebianReader, Form, FormError, JsonlReader, Records, TextReader, TsvReader, Writer, escape, unescape,
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

fn text(file: &[u8], longest: u64) -> (Pairs, Option<FormError>) {
    read(TextReader::new(file, longest))
}

fn written(pairs: &Pairs, form: Form) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), form, &[]);
    pairs.iter().for_each(|(key, value)| writer.record(key, value, None));
    writer.finish(true).expect("a vector takes all bytes").out
}

/// These bytes with the last line that proves them.
fn proved(mut body: Vec<u8>, records: usize) -> Vec<u8> {
    let end = format!("end {records} {:016x}\n", XxHash3_64::oneshot(&body));
    body.extend_from_slice(end.as_bytes());
    body
}

/// Reads bytes as a file that names tables: as its list, and as its records.
fn survive_tables(data: &[u8]) {
    for before in ["", "tables 2\nk\nr\n", "tables 2\nk\nr\nin k\n"] {
        let mut body = [b"quipu-export 2\n", before.as_bytes(), data].concat();
        if !body.ends_with(b"\n") {
            body.push(b'\n');
        }
        let count = |records: &[u8]| {
            let lines = records.split_inclusive(|byte| *byte == b'\n');
            lines.filter(|line| line.contains(&b'\t')).count()
        };
        let records = count(&body);
        let mut reader = TextReader::new(&*body, LONGEST);
        let listed = reader.tables().map(<[String]>::to_vec);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        while let Ok(Some(_)) = reader.next(&mut key, &mut value) {
            let table = reader.table().expect("each record has one");
            assert!(listed.as_ref().is_ok_and(|listed| listed.iter().any(|listed| listed == table)));
        }
        let (pairs, error) = text(&proved(body, records), LONGEST);
        assert!(error.is_some() || pairs.len() == records);
    }
}

/// Reads bytes in a form that proves nothing; the records understood are written, and read as the same.
fn survive_as(form: Form, data: &[u8]) -> (Pairs, Option<FormError>) {
    let by_form = |file: &[u8], longest| match form {
        Form::Tsv => read(TsvReader::new(file, longest)),
        Form::Jsonl => read(JsonlReader::new(file, longest)),
        Form::Quipu => text(file, longest),
    };
    let (pairs, error) = by_form(data, LONGEST);
    let (found, again) = by_form(&written(&pairs, form), LONGEST * 6 + 512);
    assert!(found == pairs && again.is_none(), "{again:?}");
    (pairs, error)
}

/// Reads bytes as files of all forms, as they are and with the proof that a text form needs; then writes
/// parts of them as records, and reads that.
pub fn survive(data: &[u8]) {
    survive_tables(data);
    text(data, LONGEST);
    let mut body = b"quipu-export 1\n".to_vec();
    body.extend_from_slice(data);
    if !body.ends_with(b"\n") {
        body.push(b'\n');
    }
    let records = body.iter().filter(|byte| **byte == b'\n').count() - 1;
    let (pairs, error) = text(&proved(body, records), LONGEST);
    assert!(error.is_some() || pairs.len() == records);
    // The understood part of any file is written as a file without mistakes.
    assert_eq!(text(&written(&pairs, Form::Quipu), LONGEST * 4 + 128).0, pairs);

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
    let file = written(&pairs, Form::Quipu);
    let (found, error) = text(&file, LONGEST);
    assert!(found == pairs && error.is_none(), "{error:?}");
    if let Some(cut) = data.first() {
        let cut = usize::from(*cut) % file.len();
        assert!(text(&file[..cut], LONGEST).1.is_some(), "{cut} of {} bytes", file.len());
    }

    let (mut line, mut back) = (Vec::new(), Vec::new());
    escape(data, &mut line);
    assert!(std::str::from_utf8(&line).is_ok_and(|line| !line.contains(char::is_control)));
    assert_eq!((unescape(&line, &mut back), &back[..]), (Ok(()), data));
}
