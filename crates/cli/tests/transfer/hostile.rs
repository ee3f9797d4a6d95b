//! What must hold of the readers whatever file they are given. Used by a seeded test and by a fuzzer.

use quipu_cli::transfer::{DebianReader, FormError, Records, TextReader, TextWriter, escape, unescape};
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

fn written(pairs: &Pairs) -> Vec<u8> {
    let mut writer = TextWriter::new(Vec::new());
    pairs.iter().for_each(|(key, value)| writer.record(key, value, None));
    writer.finish().expect("a vector takes all bytes").0
}

/// Reads bytes as files of both forms, as they are and with the proof that a text form needs; then writes parts of them
/// as records, and reads that.
pub fn survive(data: &[u8]) {
    text(data, LONGEST);
    let mut body = b"quipu-export 1\n".to_vec();
    body.extend_from_slice(data);
    if !body.ends_with(b"\n") {
        body.push(b'\n');
    }
    let records = body.iter().filter(|byte| **byte == b'\n').count() - 1;
    let end = format!("end {records} {:016x}\n", XxHash3_64::oneshot(&body));
    body.extend_from_slice(end.as_bytes());
    let (pairs, error) = text(&body, LONGEST);
    assert!(error.is_some() || pairs.len() == records);
    // What was understood, of a file with mistakes too, is written as one without.
    assert_eq!(text(&written(&pairs), LONGEST * 4 + 128).0, pairs);

    let (stanzas, error) = read(DebianReader::new(data, LONGEST, vec!["k".to_owned()]));
    let bytes: usize = stanzas.iter().map(|(_, stanza)| stanza.len()).sum();
    assert!(bytes <= data.len() && stanzas.iter().all(|(key, stanza)| key.len() < stanza.len()));
    assert!(error.is_some() || !stanzas.is_empty() || data.trim_ascii().is_empty());

    let pairs: Pairs = data
        .chunks(9)
        .map(|chunk| chunk.split_at(chunk.len() / 2))
        .map(|(k, v)| (k.into(), v.into()))
        .collect();
    let file = written(&pairs);
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
