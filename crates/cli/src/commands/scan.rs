//! `quipu scan`: prints the records of a pool in the order of their keys.

use super::check::listed;
use crate::args::{PoolChoice, TableChoice};
use crate::failure::{Failure, Outcome};
use crate::transfer::{JsonRecord, escape, proved};
use crate::{output, pool, text};
use quipu::{DamagedPlace, Design, Error, KeyValue, Store};
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::ops::Bound;

const EXAMPLES: &str = "\
Examples:
  quipu create animals.pool --size 1G
  quipu scan animals.pool
  quipu scan animals.pool --from k --to n --limit 10
  quipu scan animals.pool --from 00 --to 10 --hex --json
  quipu scan animals.pool --prefix job/ --reverse --limit 1  # the last key with this beginning
  quipu scan herds.pool --table andes

Fields of each JSON object, as in an export of the form jsonl: key, value (key_hex, value_hex with --hex, or if they are not UTF-8), \
expires (milliseconds since 1970, if it does), table (unless it is default).";

/// Print records in the order of their keys, or in reverse order.
///
/// Each record is a line: the key, a tab and the value, escaped as in an export of the form tsv
/// (docs/EXPORT.md). Keys are ordered by their bytes. This needs a design that keeps keys in order, or quipu,
/// which does so on request and then reads all records first. `quipu designs` says which keep an order;
/// `quipu export` sorts the records of any design. Every record is proved before it is printed; if one does
/// not prove itself, the others are printed and the exit code is 1.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    #[command(flatten)]
    table: TableChoice,
    /// Print only this key and those above it.
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Print only keys below this one.
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Print only keys that begin with these bytes.
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["from", "to"])]
    prefix: Option<OsString>,
    /// Begin with the highest key, and go down.
    #[arg(long)]
    reverse: bool,
    /// Print at most this number of records.
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
    /// The keys given are hexadecimal digits, and so are keys and values in JSON.
    #[arg(long)]
    hex: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// The keys that are asked for.
struct Keys {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    prefix: Option<Vec<u8>>,
}

impl Args {
    /// Prints the records.
    pub fn run(self) -> Result<Outcome, Failure> {
        let key = |key: &Option<OsString>, what| match key {
            Some(key) => text::bytes_of(key, what, self.hex).map(Some),
            None => Ok(None),
        };
        let keys = Keys {
            from: key(&self.from, "first key")?,
            to: key(&self.to, "last key")?,
            prefix: key(&self.prefix, "prefix")?,
        };
        let damage = pool::read_in_order(&self.pool, |store| self.print(store, &keys))?;
        if damage.is_empty() {
            return Ok(Outcome::Fine);
        }
        let places = listed("damaged", &damage).join("\n");
        let pool = self.pool.path.display();
        Err(Failure::Problem(format!("{pool} is damaged, and records are missing here\n{places}")))
    }

    /// Prints the records that prove themselves, and returns what does not.
    fn print(&self, store: &Store, keys: &Keys) -> Result<Vec<DamagedPlace>, Failure> {
        let client = self.table.client(store)?;
        let guard = client.pin();
        let range = match &keys.prefix {
            Some(prefix) => guard.prefix(prefix),
            None => {
                let from = keys.from.as_deref().map_or(Bound::Unbounded, Bound::Included);
                guard.range(from, keys.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
            }
        };
        let range = range.map_err(|error| match error {
            Error::Unsupported { .. } => unordered(store.design()),
            error => error.into(),
        })?;
        let records: Box<dyn Iterator<Item = Result<KeyValue<'_>, Error>>> =
            if self.reverse { Box::new(range.rev()) } else { Box::new(range) };
        let mut out = BufWriter::new(io::stdout().lock());
        let (mut line, mut damage) = (Vec::new(), Vec::new());
        for (record, _) in records.zip(0..self.limit) {
            let Some((key, value)) = proved(record, &mut damage)? else { continue };
            if self.json {
                // `None` too if it has expired since the scan came to it.
                let Some(expiry) = proved(guard.expiry(&key), &mut damage)?.flatten() else { continue };
                let record = JsonRecord::new(&key, &value, expiry.time()).in_table(self.table.told());
                output::json_line(&if self.hex { record.in_hex() } else { record })?;
                continue;
            }
            line.clear();
            escape(&key, &mut line);
            line.push(b'\t');
            escape(&value, &mut line);
            line.push(b'\n');
            out.write_all(&line).map_err(|error| Failure::output(&error))?;
        }
        out.flush().map_err(|error| Failure::output(&error))?;
        Ok(damage)
    }
}

/// The failure of a pool whose design keeps no order.
fn unordered(design: Design) -> Failure {
    let ordered = Design::ALL.iter().filter(|design| design.can().when_ordered().ordered);
    let names: Vec<&str> = ordered.map(|design| design.name()).collect();
    Failure::Usage(format!(
        "the design {design} has no range scans; import an export of the pool into one of design {}, or read the export, \
         which is sorted",
        names.join(" or ")
    ))
}
