//! `quipu table`: makes, lists and drops the tables of a pool.

mod create;
mod drop;
mod list;

pub use list::{object, row, sizes};

use crate::failure::{Failure, Outcome};
use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  quipu create herds.pool --size 256M --design xp
  quipu table create herds.pool andes
  quipu put herds.pool llama wool --table andes
  quipu table list herds.pool
  quipu table drop herds.pool andes --yes";

/// Make, list and drop tables, each with keys of its own.
///
/// Every pool of a design with tables has a table called default, which commands use unless --table names
/// another. `quipu designs` says which designs have tables.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Create(create::Args),
    List(list::Args),
    Drop(drop::Args),
}

impl Args {
    /// Carries the action out.
    pub fn run(self) -> Result<Outcome, Failure> {
        match self.action {
            Action::Create(args) => args.run(),
            Action::List(args) => args.run(),
            Action::Drop(args) => args.run(),
        }
    }
}
