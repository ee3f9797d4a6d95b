//! Keys kept in chunks: those that are not of eight bytes.
//!
//! A chunk is a line of PM. It is written whole before anything names it, and does not change while anything
//! does. One word of the tree names each key in chunks: a separator has a copy of its own. So a separator
//! outlives the key that it was made from, and the chunks of a word that stops naming them are free as soon
//! as the readers of that moment are gone.
//!
//! A damaged separator would lead to the wrong node, where other keys seem absent. So a comparison that
//! counts reads all lines of the key, and proves them by the fingerprint; others read lines until the order
//! is known.

use super::arena::{Arena, Kind};
use super::key::{CHUNK_BITS, Key, KeyBuf, Stored};
use super::settings::{Result, damaged};
use crate::epoch::Guard;
use crate::index::words::Words;
use quipu_medium::{LINE, WORD};
use std::cmp::Ordering;
use std::sync::Arc;

/// Bytes of a key that a chunk holds.
const PAYLOAD: usize = (LINE - WORD) as usize;

/// Chunks that a key of so many bytes takes.
pub(super) fn chunks_for(len: usize) -> usize {
    len.div_ceil(PAYLOAD).max(1)
}

impl<W: Words> Arena<W> {
    /// Writes a key to these chunks, as many as it takes, not yet durable. A fence follows.
    pub(super) fn write_kept(&self, bytes: &[u8], chunks: &[u64]) -> Result<Stored> {
        debug_assert_eq!(chunks.len(), chunks_for(bytes.len()));
        for (i, number) in chunks.iter().enumerate() {
            let rest = &bytes[i * PAYLOAD..];
            let mut line = [0; LINE as usize];
            let head = chunks.get(i + 1).unwrap_or(&0) | (rest.len() as u64) << CHUNK_BITS;
            line[..8].copy_from_slice(&head.to_le_bytes());
            let part = &rest[..rest.len().min(PAYLOAD)];
            line[8..8 + part.len()].copy_from_slice(part);
            self.words.write(self.chunk(*number)?, &line);
        }
        Ok(Stored::kept(chunks[0], bytes))
    }

    /// Calls `each` with the number of each chunk of a key and the part of the key in it, until it says no.
    pub(super) fn parts(&self, stored: Stored, mut each: impl FnMut(u64, &[u8]) -> bool) -> Result<()> {
        let (mut number, mut expected) = (stored.chunk(), None);
        loop {
            let place = self.chunk(number)?;
            let head = self.words.load(place);
            let left = (head >> CHUNK_BITS) as usize;
            // Each chunk has less to come than the one before, so no chain goes on for ever.
            if expected.is_some_and(|expected| expected != left) {
                return damaged("a key of the index", place);
            }
            let mut line = [0; PAYLOAD];
            let len = left.min(PAYLOAD);
            for (i, word) in line.chunks_exact_mut(WORD as usize).take(len.div_ceil(8)).enumerate() {
                let at = place + WORD * (i as u64 + 1);
                word.copy_from_slice(&self.words.load(at).to_le_bytes());
            }
            if !each(number, &line[..len]) || left <= PAYLOAD {
                return Ok(());
            }
            (number, expected) = (head & ((1 << CHUNK_BITS) - 1), Some(left - PAYLOAD));
        }
    }

    /// Calls `act` with a key that is kept in chunks, as it stands there.
    #[inline]
    fn with_kept<T>(&self, stored: Stored, act: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let (mut act, mut result, mut long) = (Some(act), None, Vec::new());
        self.parts(stored, |_, part| {
            // Nearly every key has one part, and needs no room here.
            match act.take_if(|_| part.len() < PAYLOAD && long.is_empty()) {
                Some(act) => result = Some(act(part)),
                None => long.extend_from_slice(part),
            }
            true
        })?;
        Ok(result.or_else(|| act.map(|act| act(&long))).expect("the key is given once"))
    }

    /// Calls `act` with a key that its fingerprint proves.
    #[inline]
    fn with_proved<T>(&self, stored: Stored, act: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match self.with_kept(stored, |bytes| stored.may_be(bytes).then(|| act(bytes)))? {
            Some(result) => Ok(result),
            None => damaged("a key of the index", self.chunk(stored.chunk())?),
        }
    }

    /// Proves a key that stands in a node by its fingerprint, if it is kept in chunks.
    #[inline]
    pub(super) fn prove(&self, stored: Stored) -> Result<()> {
        if stored.is_kept { self.with_proved(stored, |_| ()) } else { Ok(()) }
    }

    /// The order of a key and one in a node, which is proved.
    #[inline]
    pub(super) fn compare(&self, key: &Key<'_>, stored: Stored) -> Result<Ordering> {
        match (key, stored.is_kept) {
            (_, false) => self.compare_unproved(key, stored),
            (Key::Word(word), true) => self.with_proved(stored, |bytes| word.to_be_bytes()[..].cmp(bytes)),
            (Key::Bytes(ours, _), true) => self.with_proved(stored, |bytes| (*ours).cmp(bytes)),
        }
    }

    /// The order of a key and one in a node as it stands there.
    #[inline]
    pub(super) fn compare_unproved(&self, key: &Key<'_>, stored: Stored) -> Result<Ordering> {
        match (key, stored.is_kept) {
            (Key::Word(word), false) => Ok(word.cmp(&stored.word)),
            (Key::Bytes(bytes, _), false) => Ok(bytes.cmp(&&stored.word.to_be_bytes()[..])),
            (Key::Word(word), true) => self.compare_kept(&word.to_be_bytes(), stored),
            (Key::Bytes(bytes, _), true) => self.compare_kept(bytes, stored),
        }
    }

    fn compare_kept(&self, bytes: &[u8], stored: Stored) -> Result<Ordering> {
        let (mut rest, mut order) = (bytes, Ordering::Equal);
        self.parts(stored, |_, part| {
            let (ours, behind) = rest.split_at(rest.len().min(part.len()));
            order = ours.cmp(part);
            rest = behind;
            order == Ordering::Equal
        })?;
        Ok(if order == Ordering::Equal && !rest.is_empty() { Ordering::Greater } else { order })
    }

    /// The order of two keys in nodes as they stand there.
    pub(super) fn order(&self, left: Stored, right: Stored) -> Result<Ordering> {
        match left.is_kept {
            false => self.compare_unproved(&Key::Word(left.word), right),
            // The fingerprint is not looked at.
            true => self.with_kept(left, |bytes| self.compare_unproved(&Key::Bytes(bytes, 0), right))?,
        }
    }

    /// A key that stands in a node, as one's own, proved.
    pub(super) fn key(&self, stored: Stored) -> Result<KeyBuf> {
        match stored.is_kept {
            false => Ok(KeyBuf::Word(stored.word)),
            true => self.with_proved(stored, |bytes| KeyBuf::Bytes(bytes.to_vec())),
        }
    }

    /// The chunks of a key that stands in a node. The key is proved, so they are its own.
    pub(super) fn chunks_of(&self, stored: Stored) -> Result<Vec<u64>> {
        let mut chunks = Vec::new();
        self.prove(stored)?;
        if stored.is_kept {
            self.parts(stored, |number, _| {
                chunks.push(number);
                true
            })?;
        }
        Ok(chunks)
    }

    /// Notes that the chunks of a key are in use.
    pub(super) fn know_kept(&self, stored: Stored) -> Result<()> {
        self.chunks_of(stored)?.into_iter().for_each(|number| self.know_chunk(number));
        Ok(())
    }

    /// Gives back the chunks of a key that nothing names any more, durably, once its readers are gone.
    pub(super) fn free_chunks(self: &Arc<Self>, guard: &Guard<'_>, chunks: Vec<u64>) {
        if !chunks.is_empty() {
            chunks.iter().for_each(|number| self.know_chunk(*number));
            let arena = self.clone();
            guard.defer(Box::new(move || arena.give(Kind::Chunks, chunks)));
        }
    }
}
