//! The tables of a pool, by the names that a file has for them.

use super::error::ImportCause;
use quipu::{Client, Error, Store, Table};
use std::collections::BTreeMap;

/// Bytes of a table's name at most.
const NAME_MAX: usize = 128;

/// The table of records that name none.
pub const DEFAULT: &str = "default";

/// The tables of a pool, if its design has any.
pub fn tables_of(store: &Store) -> Result<Option<Vec<Table>>, Error> {
    store.design().can().tables.then(|| store.tables()).transpose()
}

/// Whether a table can have this name.
pub(super) fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
}

/// Names that are told before the rest is only counted.
const TOLD: usize = 10;

/// Tables in words, for a message. Names may have characters that a terminal obeys.
pub(super) fn told(names: &[String]) -> String {
    let mut words: Vec<String> = names.iter().take(TOLD).map(|name| format!("{name:?}")).collect();
    if names.len() > TOLD {
        words.push(format!("{} more", names.len() - TOLD));
    }
    let thing = if names.len() == 1 { "table" } else { "tables" };
    match words.pop() {
        Some(last) if words.is_empty() => format!("{thing} {last}"),
        Some(last) => format!("{thing} {} and {last}", words.join(", ")),
        None => format!("no {thing}"),
    }
}

/// The way of the records of a file into the tables of a pool. A table that is missing is created when its
/// turn comes.
pub(super) struct Targets<'s> {
    store: &'s Store,
    /// The only table that is asked for.
    only: Option<&'s str>,
    /// The tables of the pool, if its design has any.
    known: Option<BTreeMap<String, Table>>,
    created: Vec<String>,
    /// The name that the file has for the table whose turn it is; the outer `None` at the beginning.
    turn: Option<Option<String>>,
    /// For that table, unless its records are passed over.
    client: Option<Client>,
}

impl<'s> Targets<'s> {
    pub(super) fn of(store: &'s Store, only: Option<&'s str>) -> Result<Targets<'s>, Error> {
        let named = |table: Table| (table.name().to_owned(), table);
        let known = tables_of(store)?.map(|tables| tables.into_iter().map(named).collect());
        Ok(Targets { store, only, known, created: Vec::new(), turn: None, client: None })
    }

    /// Makes the pool ready for a file that lists its tables, or refuses it.
    pub(super) fn expect(&mut self, listed: &[String]) -> Result<(), ImportCause> {
        match self.only {
            _ if listed.is_empty() => Ok(()),
            Some(only) if listed.iter().all(|name| name != only) => {
                Err(ImportCause::NotThere { table: only.to_owned(), found: told(listed) })
            }
            None if self.known.is_none() => Err(self.no_tables(listed)),
            only => {
                let mut wanted = listed.iter().filter(|name| only.is_none_or(|only| *name == only));
                wanted.try_for_each(|name| self.client_for(Some(name)).map(drop))
            }
        }
    }

    /// Whether the next record is of another table than the one before.
    pub(super) fn turns_at(&self, name: Option<&str>) -> bool {
        self.turn.as_ref().is_none_or(|turn| turn.as_deref() != name)
    }

    /// Turns to the table that a file calls so.
    pub(super) fn turn_to(&mut self, name: Option<&str>) -> Result<(), ImportCause> {
        self.client = self.client_for(name)?;
        self.turn = Some(name.map(str::to_owned));
        Ok(())
    }

    /// For the table whose turn it is; `None` if its records are passed over.
    pub(super) fn client(&mut self) -> Option<&mut Client> {
        self.client.as_mut()
    }

    /// The tables that were created.
    pub(super) fn into_created(self) -> Vec<String> {
        self.created
    }

    fn client_for(&mut self, name: Option<&str>) -> Result<Option<Client>, ImportCause> {
        if let (Some(only), Some(name)) = (self.only, name)
            && only != name
        {
            return Ok(None);
        }
        let Some(wanted) = name.or(self.only) else { return Ok(Some(self.store.client())) };
        let is_chosen = name.is_some() && self.only.is_some();
        let client = match &self.known {
            Some(_) => self.table(wanted).and_then(|table| self.store.client().on(&table)),
            // A pool without tables takes one of a file, if that was said.
            None if is_chosen => Ok(self.store.client()),
            None if name.is_some() => return Err(self.no_tables(&[wanted.to_owned()])),
            None => self.store.table(wanted).and_then(|table| self.store.client().on(&table)),
        };
        Ok(Some(client?))
    }

    fn table(&mut self, name: &str) -> Result<Table, Error> {
        if let Some(table) = self.known.iter().find_map(|known| known.get(name)) {
            return Ok(table.clone());
        }
        let table = self.store.create_table(name)?;
        self.created.push(name.to_owned());
        self.known.iter_mut().for_each(|known| drop(known.insert(name.to_owned(), table.clone())));
        Ok(table)
    }

    fn no_tables(&self, names: &[String]) -> ImportCause {
        ImportCause::NoTables { found: told(names), design: self.store.design() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tables_are_told_in_few_words() {
        let names: Vec<String> = (0..13).map(|number| format!("t{number}")).collect();
        assert_eq!(told(&names[..1]), "table \"t0\"");
        assert_eq!(told(&names[..3]), "tables \"t0\", \"t1\" and \"t2\"");
        assert!(told(&names).ends_with("\"t9\" and 3 more"), "{}", told(&names));
        assert_eq!(told(&["\u{1b}[2J".to_owned()]), "table \"\\u{1b}[2J\"");
    }
}
