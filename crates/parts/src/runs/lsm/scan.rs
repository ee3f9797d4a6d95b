//! Records of several runs in one order.

use super::entry::{self, DATA};
use super::files;
use super::levels::Run;
use crate::runs::{LevelRecord, RunsError};
use lsm_tree::{InternalValue, Table, UserKey};
use std::ops::Bound;
use std::path::Path;

/// The order of a scan, and its begin.
pub(super) enum Order<'o> {
    /// From a key on.
    Rising { from: &'o [u8] },
    /// From below a key, or with it; from the end if there is none.
    Falling { to: Option<(&'o [u8], bool)> },
}

/// The newest records up to a number, merged.
pub(super) struct Scan<'l> {
    cursors: Vec<Cursor<'l>>,
    /// The next record of each cursor.
    heads: Vec<Option<InternalValue>>,
    falls: bool,
    place: &'l Path,
    /// An error, after which nothing comes.
    error: Option<lsm_tree::Error>,
}

/// A way through a run. Its tables are opened one after the other.
struct Cursor<'l> {
    /// Those that are not open yet.
    tables: &'l [Table],
    open: Option<Box<dyn DoubleEndedIterator<Item = lsm_tree::Result<InternalValue>> + 'l>>,
    bounds: (Bound<UserKey>, Bound<UserKey>),
    falls: bool,
    /// Numbers, as the library's, are below this one.
    limit: u64,
    /// The entry behind the last record of a falling scan.
    ahead: Option<InternalValue>,
    /// The key of the last record of a rising scan.
    done: Option<UserKey>,
}

impl<'l> Scan<'l> {
    /// A scan over runs, newest first.
    pub fn new(runs: &'l [Run], order: Order<'_>, limit: u64, place: &'l Path) -> Scan<'l> {
        let first = Bound::Included(UserKey::from(&[DATA][..]));
        let (falls, bounds) = match order {
            Order::Rising { from } => {
                (false, (Bound::Included(entry::long_key(from).into()), Bound::Unbounded))
            }
            Order::Falling { to: None } => (true, (first, Bound::Unbounded)),
            Order::Falling { to: Some((to, true)) } => {
                (true, (first, Bound::Included(entry::long_key(to).into())))
            }
            Order::Falling { to: Some((to, false)) } => {
                (true, (first, Bound::Excluded(entry::long_key(to).into())))
            }
        };
        let cursors: Vec<Cursor> = runs.iter().map(|run| Cursor::new(run, &bounds, falls, limit)).collect();
        let mut scan =
            Scan { heads: cursors.iter().map(|_| None).collect(), cursors, falls, place, error: None };
        (0..scan.cursors.len()).for_each(|at| scan.refill(at));
        scan
    }

    fn refill(&mut self, at: usize) {
        match self.cursors[at].next() {
            Ok(head) => self.heads[at] = head,
            Err(error) => self.error = Some(error),
        }
    }

    /// Which run has the next record: of those with the same key, the newest.
    fn nearest(&self) -> Option<usize> {
        let heads =
            self.heads.iter().enumerate().filter_map(|(at, head)| Some((&head.as_ref()?.key.user_key, at)));
        let nearest = match self.falls {
            true => heads.min_by(|one, next| next.0.cmp(one.0)),
            false => heads.min_by(|one, next| one.0.cmp(next.0)),
        };
        nearest.map(|(_, at)| at)
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<LevelRecord, RunsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            self.cursors.clear();
            self.heads.clear();
            return Some(Err(files::of_library(self.place, error)));
        }
        let nearest = self.nearest()?;
        let item = self.heads[nearest].take()?;
        self.refill(nearest);
        for at in nearest + 1..self.heads.len() {
            if self.heads[at].as_ref().is_some_and(|head| head.key.user_key == item.key.user_key) {
                self.refill(at);
            }
        }
        let record = entry::decode(&item.value).map(|(head, value)| {
            // A copy: a slice of the library would keep its whole block.
            LevelRecord { key: item.key.user_key[1..].to_vec(), head, value: value.to_vec() }
        });
        Some(record.map_err(|fault| files::damaged(self.place, fault)))
    }
}

impl<'l> Cursor<'l> {
    fn new(run: &'l Run, bounds: &(Bound<UserKey>, Bound<UserKey>), falls: bool, limit: u64) -> Cursor<'l> {
        let all = &*run.tables;
        let is_before = |table: &Table| match &bounds.0 {
            Bound::Included(from) => table.metadata.key_range.max() < from,
            _ => false,
        };
        let reaches = |table: &Table| match &bounds.1 {
            Bound::Included(to) | Bound::Excluded(to) => table.metadata.key_range.min() <= to,
            Bound::Unbounded => true,
        };
        let begin = all.partition_point(is_before);
        let end = all.partition_point(reaches).max(begin);
        let (tables, bounds) = (&all[begin..end], bounds.clone());
        Cursor { tables, open: None, bounds, falls, limit, ahead: None, done: None }
    }

    /// The next entry of the run, of whichever number.
    fn entry(&mut self) -> lsm_tree::Result<Option<InternalValue>> {
        loop {
            let next = match &mut self.open {
                Some(open) if self.falls => open.next_back(),
                Some(open) => open.next(),
                None => None,
            };
            if let Some(entry) = next {
                return entry.map(Some);
            }
            let next = if self.falls { self.tables.split_last() } else { self.tables.split_first() };
            let Some((table, rest)) = next else { return Ok(None) };
            self.tables = rest;
            self.open = Some(Box::new(table.range(self.bounds.clone())));
        }
    }

    /// The newest record below the limit of the next key that has one.
    fn next(&mut self) -> lsm_tree::Result<Option<InternalValue>> {
        let mut best: Option<InternalValue> = None;
        loop {
            let entry = match self.ahead.take() {
                Some(entry) => Some(entry),
                None => self.entry()?,
            };
            let Some(entry) = entry else { return Ok(best) };
            if best.as_ref().is_some_and(|best| best.key.user_key != entry.key.user_key) {
                self.ahead = Some(entry);
                return Ok(best);
            }
            if entry.key.seqno >= self.limit || self.done.as_ref() == Some(&entry.key.user_key) {
                continue;
            }
            if !self.falls {
                self.done = Some(entry.key.user_key.clone());
                return Ok(Some(entry));
            }
            best = Some(entry);
        }
    }
}
