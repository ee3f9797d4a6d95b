//! The model's judge of reads through guards: of one key, and of walks over many.

use super::call::{Call, Look};
use super::hand::{Answer, Ends, Pair};
use super::model::{During, Model, Moment, Table, fault, fits, shown};
use quipu::ErrorKind;
use std::ops::Bound;

impl Model {
    /// Judges a read through a guard of the state of a table at a moment.
    pub(super) fn judge_look(
        &self,
        moment: &Moment,
        table: usize,
        look: &Look,
        answer: &Answer,
        during: During,
    ) -> Result<(), String> {
        let nothing = Table::default();
        let table = moment.0[table].as_ref().unwrap_or(&nothing);
        match (look, answer) {
            (_, Answer::Refused(ErrorKind::Argument, _))
                if !Call::Look(look.clone()).is_offered(&self.can) =>
            {
                Ok(())
            }
            (Look::Key(key), Answer::Saw(seen)) => {
                let key = self.name(*key);
                Model::judge_shown(&key, table.get(&key), seen, during)
            }
            (Look::All(_), Answer::All(pairs, keys)) => {
                let everything = (Bound::Unbounded, Bound::Unbounded);
                let mut pairs: Vec<_> = pairs.iter().map(|(key, value)| (key, Some(value))).collect();
                let mut keys: Vec<_> = keys.iter().map(|key| (key, None)).collect();
                pairs.sort_unstable();
                keys.sort_unstable();
                self.judge_walk(table, &pairs, everything, during)?;
                self.judge_walk(table, &keys, everything, during)
                    .map_err(|what| format!("of keys alone, {what}"))
            }
            (Look::Range(..) | Look::End(_), Answer::Ends(ends)) => {
                let (from, to) = self.span(look);
                self.judge_ends(table, ends, (from.as_ref(), to.as_ref()), during)
            }
            (Look::Prefix(key, len, _), Answer::Ends(ends)) => {
                let prefix = self.prefix(*key, *len);
                let mut behind = prefix.clone();
                while behind.last() == Some(&u8::MAX) {
                    behind.pop();
                }
                *behind.last_mut().expect("an owner's byte is lower") += 1;
                self.judge_ends(table, ends, (Bound::Included(&prefix), Bound::Excluded(&behind)), during)
            }
            (_, Answer::Refused(_, why)) => fault(format!("it is refused: {why}")),
            (_, answer) => fault(format!("it has the answer {answer:?}")),
        }
    }

    /// Judges a walk from both ends, which may have ended before they met.
    fn judge_ends(
        &self,
        table: &Table,
        Ends { front, back, met }: &Ends,
        (from, to): (Bound<&Vec<u8>>, Bound<&Vec<u8>>),
        during: During,
    ) -> Result<(), String> {
        fn refer((key, value): &Pair) -> (&Vec<u8>, Option<&Vec<u8>>) {
            (key, Some(value))
        }
        let front: Vec<_> = front.iter().map(refer).collect();
        let back: Vec<_> = back.iter().rev().map(refer).collect();
        if *met {
            return self.judge_walk(table, &[front, back].concat(), (from, to), during);
        }
        if let (Some((last, _)), Some((first, _))) = (front.last(), back.first())
            && last >= first
        {
            return fault("the ends of a walk have passed each other");
        }
        if let Some((last, _)) = front.last() {
            self.judge_walk(table, &front, (from, Bound::Included(*last)), during)?;
        }
        match back.first() {
            Some((first, _)) => self.judge_walk(table, &back, (Bound::Included(*first), to), during),
            None => Ok(()),
        }
    }

    /// Judges a walk over all keys within bounds, in their order: the own ones exactly, the others by what
    /// their values prove.
    fn judge_walk(
        &self,
        table: &Table,
        found: &[(&Vec<u8>, Option<&Vec<u8>>)],
        (from, to): (Bound<&Vec<u8>>, Bound<&Vec<u8>>),
        during: During,
    ) -> Result<(), String> {
        let (from, to) = (from.cloned(), to.cloned());
        let mut expected =
            table.range((from.clone(), Bound::Unbounded)).take_while(|(key, _)| is_below(key, &to));
        let mut next = expected.next();
        for (number, (key, value)) in found.iter().enumerate() {
            let name = key.escape_ascii();
            if number > 0 && found[number - 1].0 >= key {
                return fault(format!("a walk shows key {name} twice, or out of order"));
            }
            if !is_within(key, &from, &to) {
                return fault(format!("a walk shows key {name} beyond its bounds"));
            }
            while let Some((missed, entry)) = next.filter(|(missed, _)| missed < key) {
                fits(missed, Some(entry), None, during)?;
                next = expected.next();
            }
            let entry = next.filter(|(expected, _)| expected == key).map(|(_, entry)| entry);
            if key.first() == Some(&self.owner) {
                let found = value.map(Vec::as_slice).or(entry.map(|entry| &*entry.value));
                fits(key, entry, found.or(Some(b"")), during)?;
            } else if !key.first().is_some_and(|owner| (1..=self.owners).contains(owner))
                || !value.is_none_or(|value| self.codec.proves(key, value))
            {
                let value = shown(value.map(Vec::as_slice));
                return fault(format!("key {name} appeared with {value}, which nobody wrote"));
            }
            if entry.is_some() {
                next = expected.next();
            }
        }
        next.into_iter()
            .chain(expected)
            .try_for_each(|(missed, entry)| fits(missed, Some(entry), None, during))
    }
}

fn is_below(key: &[u8], to: &Bound<Vec<u8>>) -> bool {
    match to {
        Bound::Unbounded => true,
        Bound::Included(to) => key <= &to[..],
        Bound::Excluded(to) => key < &to[..],
    }
}

pub(super) fn is_within(key: &[u8], from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    let is_above = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= &from[..],
        Bound::Excluded(from) => key > &from[..],
    };
    is_above && is_below(key, to)
}
