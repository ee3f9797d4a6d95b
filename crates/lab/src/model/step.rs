//! Steps of a model run, and drawing them from a seed.

use quipu::internals::RecordForm;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Clients that are open at once.
pub(super) const CLIENTS: usize = 3;
/// Keys of a run: few, so that calls meet.
const KEYS: usize = 40;

/// A call, or the end of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `put` of key and value, by a client.
    Put(usize, usize, usize),
    /// `get` and `get_into` of a key.
    Get(usize, usize),
    /// `get_many` of keys.
    GetMany(usize, Vec<usize>),
    /// `put_many` of keys and values.
    PutMany(usize, Vec<(usize, usize)>),
    /// `write` of a batch: values of keys, or nothing. `true` says nothing by a value that has expired.
    Write(usize, Vec<(usize, Option<usize>, bool)>),
    /// `delete` of a key, or with `true` `remove`.
    Delete(usize, usize, bool),
    /// `update` of a key: to a value, or to nothing.
    Update(usize, usize, Option<usize>),
    /// `put_if_absent` of key and value.
    PutIfAbsent(usize, usize, usize),
    /// `compare_and_swap` of a key, expecting what it has (or something else), to a value or nothing.
    Swap(usize, usize, bool, Option<usize>),
    /// `update_in_place` of a key: adds a number to a word of its value. Designs and records that cannot say
    /// so.
    Change(usize, usize, u64),
    /// Iteration over everything.
    Iterate(usize),
    /// A client ends, and another takes its place.
    Renew(usize),
    /// The store is closed and opened.
    Close,
    /// The store is dropped and opened.
    Drop,
    /// `check`.
    Check,
}

/// Where the word stands in a value that is changed in place: behind a key of [`FIXED`], a multiple of 8.
pub(super) const WORD: u64 = 12;

/// Records of one size, for runs that have them.
pub(super) const FIXED: RecordForm = RecordForm::Fixed { key: 12, value: 100 };

/// The bytes of a key: of many lengths, with zeros, prefixes of each other; or all of one length.
pub(super) fn key_bytes(key: usize, form: RecordForm) -> Vec<u8> {
    if let RecordForm::Fixed { key: len, .. } = form {
        return crate::contract::value_of(b"key", key as u64, usize::from(len));
    }
    match key % 5 {
        0 => vec![0; key / 5 + 1],
        1 => vec![key as u8],
        2 => format!("a key {key}").into_bytes(),
        3 => vec![b'p'; key * 9],
        _ => (key as u64).to_le_bytes().to_vec(),
    }
}

/// The bytes of a value; every 32nd is too large. Of the others all have one length, or value 0 is empty, and
/// a few live in zones of their own. `inline` is the longest that stands in a record.
pub(super) fn value_bytes(value: usize, form: RecordForm, inline: u64, limit: u64) -> Vec<u8> {
    let len = match value % 32 {
        31 => limit as usize + 1,
        _ if form != RecordForm::Variable => limit as usize,
        0 => 0,
        30 => inline as usize,
        29 => inline as usize + 1,
        28 => inline as usize * 9 + value,
        27 => 1500,
        small => small * 11,
    };
    crate::contract::value_of(b"model", value as u64, len)
}

/// The steps of a seed.
pub fn generate(seed: u64, steps: usize) -> Vec<Step> {
    let mut random = SmallRng::seed_from_u64(seed);
    // Half of the runs use a few keys only: they rewrite, delete and reinsert.
    let keys = if random.random_ratio(1, 2) { 6 } else { KEYS };
    let mut value = 0;
    (0..steps)
        .map(|_| {
            let client = random.random_range(0..CLIENTS);
            let key = random.random_range(0..keys);
            let mut draw = |random: &mut SmallRng| {
                value += 1;
                // Mostly ordinary sizes: full-sized values would only fill the pool.
                if random.random_ratio(1, 20) { value } else { value / 32 * 32 + value % 27 }
            };
            match random.random_range(0..100) {
                0..30 => Step::Put(client, key, draw(&mut random)),
                30..37 => Step::Get(client, key),
                37..40 => Step::Change(client, key, draw(&mut random) as u64),
                40..45 => {
                    let count = random.random_range(0..70);
                    Step::GetMany(client, (0..count).map(|_| random.random_range(0..keys + 2)).collect())
                }
                45..50 => {
                    let count = random.random_range(0..40);
                    let mut pair = |random: &mut SmallRng| (random.random_range(0..keys), draw(random));
                    Step::PutMany(client, (0..count).map(|_| pair(&mut random)).collect())
                }
                50..54 => {
                    let count = random.random_range(0..40);
                    let mut entry = |random: &mut SmallRng| {
                        let value = random.random_ratio(2, 3).then(|| draw(random));
                        (random.random_range(0..keys), value, random.random_ratio(1, 2))
                    };
                    Step::Write(client, (0..count).map(|_| entry(&mut random)).collect())
                }
                54..65 => Step::Delete(client, key, random.random_ratio(1, 2)),
                65..73 => {
                    let value = random.random_ratio(2, 3).then(|| draw(&mut random));
                    Step::Update(client, key, value)
                }
                73..80 => Step::PutIfAbsent(client, key, draw(&mut random)),
                80..88 => {
                    let value = random.random_ratio(2, 3).then(|| draw(&mut random));
                    Step::Swap(client, key, random.random_ratio(3, 4), value)
                }
                88..91 => Step::Iterate(client),
                91..94 => Step::Renew(client),
                94..96 => Step::Close,
                96..98 => Step::Drop,
                _ => Step::Check,
            }
        })
        .collect()
}
