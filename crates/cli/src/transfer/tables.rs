//! The tables of a pool, by the names that a file has for them.

use super::error::ImportCause;
use quipu::{Client, Design, Error, Store, Table};

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

/// The refusal of a file that does not have the table that is asked for, and has these.
pub(super) fn not_there(table: &str, found: &str) -> ImportCause {
    ImportCause::Tables(format!("no table {table:?}, only {found}; choose another with --table"))
}

/// The way of the records of a file into the tables of a pool. A table that is missing is created when its
/// turn comes.
pub(super) struct Targets<'s> {
    store: &'s Store,
    /// The only table that is asked for.
    only: Option<&'s str>,
    /// The tables that were created.
    pub(super) created: Vec<String>,
    /// The name that the file has for the table whose turn it is; the outer `None` at the beginning.
    turn: Option<Option<String>>,
    /// For that table, unless its records are passed over.
    pub(super) client: Option<Client>,
}

impl<'s> Targets<'s> {
    pub(super) fn of(store: &'s Store, only: Option<&'s str>) -> Targets<'s> {
        Targets { store, only, created: Vec::new(), turn: None, client: None }
    }

    /// Makes the pool ready for a file that lists its tables, or refuses it.
    pub(super) fn expect(&mut self, listed: &[String]) -> Result<(), ImportCause> {
        match self.only {
            _ if listed.is_empty() => Ok(()),
            Some(only) if listed.iter().all(|name| name != only) => Err(not_there(only, &told(listed))),
            None if !self.has_tables() => Err(self.no_tables(listed)),
            _ => listed.iter().try_for_each(|name| self.client_for(Some(name)).map(drop)),
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

    fn client_for(&mut self, name: Option<&str>) -> Result<Option<Client>, ImportCause> {
        let wanted = match (name, self.only) {
            (Some(name), Some(only)) if name != only => return Ok(None),
            // A pool without tables takes one of a file, if that was said.
            (Some(_), Some(_)) if !self.has_tables() => None,
            (Some(name), _) if !self.has_tables() => return Err(self.no_tables(&[name.to_owned()])),
            (name, only) => name.or(only),
        };
        let Some(wanted) = wanted else { return Ok(Some(self.store.client())) };
        let table = match self.store.table(wanted) {
            Err(Error::NoTable { .. }) => {
                let table = self.store.create_table(wanted)?;
                self.created.push(wanted.to_owned());
                table
            }
            found => found?,
        };
        Ok(Some(self.store.client().on(&table)?))
    }

    fn has_tables(&self) -> bool {
        self.store.design().can().tables
    }

    fn no_tables(&self, names: &[String]) -> ImportCause {
        let can = Design::ALL.iter().filter(|design| design.can().tables).map(|design| design.name());
        let (found, design, can) = (told(names), self.store.design(), can.collect::<Vec<_>>().join(" or "));
        let what = format!("the {found}, and the design {design} has no tables");
        let hint = format!("choose one with --table, or import it into a pool of design {can}");
        ImportCause::Tables(format!("{what}; {hint}"))
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
