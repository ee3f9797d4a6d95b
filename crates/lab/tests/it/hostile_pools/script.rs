//! Scripts of changes to a pool, in bytes: a fuzzer writes them, a seed does, or whoever repeats a find.
//!
//! A change that breaks a check is refused by that check and shows nothing of what lies behind it. So a
//! script can also make superblocks and records prove themselves again after it changed them: the worst that
//! someone can do who may write the pool's file and knows its secret.

use super::victim::{COPY, Victim, contents_of, superblock_field};
use quipu::Error;
use quipu_lab::contract::{Contents, value_of};
use quipu_parts::record::{Certifier, LifeKey};
use quipu_parts::space::SpaceError;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// Changes of a script that count; more would only make the pool noise.
const CHANGES: usize = 12;

/// A pool of several versions of its keys, with a map of the places that are worth changing.
pub struct Ground {
    victim: Victim,
    certifier: Certifier,
    tables: Range<usize>,
    heads: Vec<usize>,
    records: Vec<Placed>,
}

/// A record of the pool.
struct Placed {
    life: LifeKey,
    offset: u64,
    bytes: Range<usize>,
}

/// Reads a script.
struct Words<'s>(&'s [u8]);

impl Words<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes([self.byte()?, self.byte()?])))
    }

    /// A word as damage or malice would choose it: around nothing, around all, a power of two, or any.
    fn word(&mut self) -> Option<u64> {
        let kind = self.byte()?;
        Some(match kind % 4 {
            0 => u64::from(kind >> 2),
            1 => (u64::from(kind >> 2)).wrapping_neg(),
            2 => 1u64.rotate_left(u32::from(kind >> 2)),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte().unwrap_or(kind))),
        })
    }
}

impl Ground {
    /// A pool of 256 KiB that was closed, or dropped.
    pub fn new(closed: bool) -> Ground {
        let victim = Victim::new(256 << 10, 16 << 10, closed, |store| {
            let mut contents = Contents::new();
            let mut client = store.client();
            for (version, key) in (0..6u64).flat_map(|version| (0..50u64).map(move |key| (version, key))) {
                let name = format!("k{key}").into_bytes();
                if (key + version) % 9 == 0 {
                    client.update::<&[u8]>(&name, |_| None).unwrap();
                    contents.remove(&name);
                } else {
                    let value = value_of(&name, version, 30 + (key * version) as usize % 80);
                    client.put(&name, &value).unwrap();
                    contents.insert(name, value);
                }
            }
            contents
        });
        let certifier = victim.certifier();
        let zones = victim.zones();
        let tables = zones[0].0 - 128..zones[zones.len() - 1].0 + 16;
        let (mut heads, mut records) = (Vec::new(), Vec::new());
        for segment in victim.segments() {
            let life = certifier.life_key(segment.life, segment.nonce);
            heads.push(segment.start);
            records.extend(segment.records.into_iter().map(|bytes| {
                let offset = (bytes.start - segment.start) as u64;
                Placed { life, offset, bytes }
            }));
        }
        Ground { victim, certifier, tables, heads, records }
    }

    /// A place in the pool, and some length from there within what it belongs to.
    fn place(&self, script: &mut Words<'_>) -> Option<Range<usize>> {
        let (kind, number) = (script.byte()?, script.number()?);
        let within = |range: &Range<usize>| range.start + number % range.len()..range.end;
        Some(match kind % 6 {
            0 => within(&(0..256)),
            1 => within(&(COPY..COPY + 256)),
            2 => within(&self.tables),
            3 => {
                let head = self.heads[usize::from(kind / 6) % self.heads.len()];
                within(&(head..head + 64))
            }
            4 => within(&self.record(number, kind).bytes),
            _ => {
                let at = number << 3 | usize::from(kind / 6) & 7;
                within(&(at % self.victim.bytes.len()..self.victim.bytes.len()))
            }
        })
    }

    fn record(&self, number: usize, salt: u8) -> &Placed {
        &self.records[(number ^ usize::from(salt) << 4) % self.records.len()]
    }

    /// Carries out the next change; `None` at the end of the script.
    fn change(&self, script: &mut Words<'_>, bytes: &mut Vec<u8>) -> Option<()> {
        match script.byte()? % 9 {
            0 => {
                let place = self.place(script)?;
                let bit = script.byte()?;
                *bytes.get_mut(place.start)? ^= 1 << (bit & 7);
            }
            1 => {
                let place = self.place(script)?;
                *bytes.get_mut(place.start)? = script.byte()?;
            }
            2 | 3 => {
                let at = self.place(script)?.start & !7;
                let word = script.word()?;
                bytes.get_mut(at..at + 8)?.copy_from_slice(&word.to_le_bytes());
            }
            4 => {
                let place = self.place(script)?;
                let (len, fill) = (script.byte()?, script.byte()?);
                let end = place.end.min(place.start + usize::from(len) * 4);
                bytes.get_mut(place.start..end)?.fill(if fill < 128 { 0 } else { fill });
            }
            5 => {
                let (from, to) = (self.place(script)?, self.place(script)?);
                let len = (usize::from(script.byte()?) * 8).min(from.len()).min(to.len());
                if from.start + len <= bytes.len() && to.start + len <= bytes.len() {
                    bytes.copy_within(from.start..from.start + len, to.start);
                }
            }
            6 => {
                let (len, unit) = (script.number()?, script.byte()?);
                bytes.resize(if unit < 128 { len } else { len << 3 }, 0);
            }
            7 => {
                let copy = usize::from(script.byte()? & 1) * COPY;
                let copy = bytes.get_mut(copy..copy + COPY)?;
                let check = XxHash3_64::oneshot(&copy[8..]);
                copy[..8].copy_from_slice(&check.to_le_bytes());
            }
            _ => self.certify(script, bytes)?,
        }
        Some(())
    }

    /// Changes a field of a record's header and makes the record prove itself, as long as it says it is.
    fn certify(&self, script: &mut Words<'_>, bytes: &mut [u8]) -> Option<()> {
        let (number, salt) = (script.number()?, script.byte()?);
        let Placed { life, offset, bytes: place } = self.record(number, salt);
        let (field, value) = (script.byte()?, script.byte()?);
        let at = place.start + 8 + usize::from(field % 16);
        *bytes.get_mut(at)? = value;
        let head = bytes.get(place.start..place.start + 24)?;
        let key = u64::from(u16::from_le_bytes([head[18], head[19]]));
        let value = u64::from(u32::from_le_bytes([head[20], head[21], head[22], head[23]]));
        let len = quipu_parts::record::padded(24 + key + value) as usize;
        let record = bytes.get_mut(place.start..place.start + len)?;
        let check = self.certifier.record_check(*life, *offset, record);
        record[..8].copy_from_slice(&check.to_le_bytes());
        Some(())
    }

    /// Changes a copy of the pool by the script and opens it. A refused one was not changed any further; an
    /// accepted one is read, checked, written and opened again. Tells whether it was accepted.
    pub fn survive(&self, script: &[u8]) -> bool {
        let mut words = Words(script);
        let bytes = self.victim.damaged(|bytes| {
            for _ in 0..CHANGES {
                if !words.0.is_empty() && self.change(&mut words, bytes).is_none() {
                    // Bytes that do not fit the pool, which may be cut short, are left out.
                    continue;
                }
            }
        });
        let Ok(mut store) = self.victim.open(&bytes) else { return false };
        let found = contents_of(&store);
        {
            let client = store.client();
            for (key, value) in &found {
                assert_eq!(client.get(key).unwrap().as_ref(), Some(value), "{}", key.escape_ascii());
            }
            self.victim.contents.keys().for_each(|key| drop(client.get(key).unwrap()));
        }
        store.check(&|_, _| {}).unwrap();
        let mut client = store.client();
        // A pool that says it is full is right to refuse.
        let written = client.put(b"later", b"write").is_ok();
        let deleted = client.update::<&[u8]>(b"k1", |_| None).is_ok();
        drop((client, store));
        let store = match self.victim.reopened() {
            Err(Error::Space(SpaceError::Geometry { .. })) if ends_soon(&bytes) => return true,
            reopened => reopened.unwrap(),
        };
        let client = store.client();
        assert!(!written || client.get(b"later").unwrap().as_deref() == Some(b"write"));
        assert!(!deleted || client.get(b"k1").unwrap().is_none());
        let count = contents_of(&store).len() as u64;
        assert_eq!(store.stats().records, count);
        true
    }
}

/// Whether a forged superblock counts so far that one more run passes the last number that is accepted.
fn ends_soon(bytes: &[u8]) -> bool {
    let far = (1 << 61) - (1 << 40);
    ["clock_ceiling", "run", "generation"].into_iter().any(|name| {
        [0, COPY].into_iter().any(|copy| {
            let at = copy + superblock_field(name);
            let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
            word.is_some_and(|word| u64::from_le_bytes(word) >= far)
        })
    })
}
