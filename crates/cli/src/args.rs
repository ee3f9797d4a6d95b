//! The command line as a whole, and the kinds of arguments that several commands share.

use crate::commands::{
    bench, check, compact, create, del, delete_range, designs, export, get, import, info, probe, put, scan,
    sync, table,
};
use crate::failure::{Failure, Outcome};
use crate::program;
use crate::transfer::DEFAULT;
use clap::builder::styling::Styles;
use clap::{Parser, Subcommand};
use quipu::{Client, Error, Levels, MediumKind, Options, Store, Topology};
use std::path::PathBuf;
use std::process::ExitCode;

/// The help as a whole, which fits one screen.
const HELP: &str = "\
{about}

{usage-heading} {usage}      (quipu COMMAND --help: all about one of them)

Commands:
{subcommands}{after-help}";

/// Rules of all commands, shown below the list of them.
const EVERYWHERE: &str = "\
Exit codes: 0 all is well, 1 a problem was found or something failed, 2 misuse,
or the file is no pool, 3 the key is absent. --json prints objects, one a line.

Examples:
  quipu create animals.pool --size 256M
  quipu put animals.pool llama wool";

#[derive(Parser)]
#[command(
    name = "quipu",
    version,
    about = "A durable key-value store for persistent memory, and for plain files.",
    help_template = HELP,
    after_help = EVERYWHERE,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    styles = Styles::plain(),
    max_term_width = 100
)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// A command with its arguments.
#[derive(Subcommand)]
pub enum Command {
    // Each says of itself what it does, in its own file; a sentence here would take that one's place in the
    // help.
    Create(create::Args),
    Put(put::Args),
    Get(get::Args),
    Del(del::Args),
    DeleteRange(delete_range::Args),
    Scan(scan::Args),
    Import(import::Args),
    Export(export::Args),
    Table(table::Args),
    Info(info::Args),
    Check(check::Args),
    Compact(compact::Args),
    Sync(sync::Args),
    Probe(probe::Args),
    Designs(designs::Args),
    Bench(bench::Args),
}

impl Command {
    /// Carries the command out.
    pub fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::Create(args) => args.run(),
            Command::Put(args) => args.run(),
            Command::Get(args) => args.run(),
            Command::Del(args) => args.run(),
            Command::DeleteRange(args) => args.run(),
            Command::Scan(args) => args.run(),
            Command::Import(args) => args.run(),
            Command::Export(args) => args.run(),
            Command::Table(args) => args.run(),
            Command::Info(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Compact(args) => args.run(),
            Command::Sync(args) => args.run(),
            Command::Probe(args) => args.run(),
            Command::Bench(args) => args.run(),
            Command::Designs(args) => args.run(),
        }
    }
}

/// The program: does what its command line asks for.
pub fn main() -> ExitCode {
    program::run(|line: Line| line.command.run())
}

/// The pool that a command works with.
#[derive(clap::Args)]
pub struct PoolChoice {
    /// The pool.
    #[arg(value_name = "POOL")]
    pub path: PathBuf,
    #[command(flatten)]
    pub levels: LevelsChoice,
    #[command(flatten)]
    pub parts: PartsChoice,
}

impl PoolChoice {
    /// The options to open it with, beside all others.
    pub fn options(&self) -> Options {
        self.parts.told(Options::new().levels(self.levels.told()))
    }
}

/// The places of the parts of a pool, and the machine that they are in.
#[derive(clap::Args)]
pub struct PartsChoice {
    /// Where a part of the pool is now, if it has moved; may be repeated. The pool itself is part 0.
    #[arg(long = "part", value_name = "NUMBER=PATH", value_parser = numbered)]
    moved: Vec<(usize, PathBuf)>,
    #[command(flatten)]
    pub topology: TopologyChoice,
}

impl PartsChoice {
    /// Options with these places.
    fn told(&self, options: Options) -> Options {
        let placed = |options: Options, (number, path): &(usize, PathBuf)| options.part_at(*number, path);
        self.moved.iter().fold(options.topology(self.topology.told()), placed)
    }
}

/// The nodes of the machine.
#[derive(clap::Args)]
pub struct TopologyChoice {
    /// The nodes of the machine with their processors and distances, such as "0:0-3;1:4-7@10,21/21,10", for a
    /// pool of several parts. [default: QUIPU_TOPOLOGY, or as the system reports]
    #[arg(long, value_name = "NODES")]
    topology: Option<Topology>,
}

impl TopologyChoice {
    /// The nodes, if they are told.
    pub fn told(&self) -> Option<Topology> {
        self.topology.clone()
    }
}

fn numbered(text: &str) -> Result<(usize, PathBuf), String> {
    let (number, path) =
        text.split_once('=').ok_or("name its number and its place, such as 1=/mnt/pmem1/part")?;
    let number = number.parse().map_err(|_| format!("{number:?} is no number of a part"))?;
    Ok((number, path.into()))
}

/// The place of the levels of a pool.
#[derive(clap::Args)]
pub struct LevelsChoice {
    /// The folder in which the design xp keeps the data for which the pool has no room. A link with the
    /// default name has the same effect. [default: the pool's name and .runs, and none for a pool on a
    /// device]
    #[arg(long = "levels", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl LevelsChoice {
    /// The same for the library.
    pub fn told(&self) -> Levels {
        self.folder.clone().map_or(Levels::Beside, Levels::Folder)
    }
}

/// The table that a command works with.
#[derive(clap::Args)]
pub struct TableChoice {
    /// The table, in a pool of a design that has tables. `quipu table list` shows them.
    /// [default: the table called default]
    #[arg(long = "table", value_name = "NAME")]
    name: Option<String>,
}

impl TableChoice {
    /// A client for the table, which must be there.
    pub fn client(&self, store: &Store) -> Result<Client, Error> {
        match &self.name {
            Some(name) => store.client().on(&store.table(name)?),
            None => Ok(store.client()),
        }
    }

    /// The name that its records have for it in JSON.
    pub fn told(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| *name != DEFAULT)
    }
}

/// Reads a medium that a pool in a file system or on a device can have; `auto` lets the path decide.
pub fn pool_medium(text: &str) -> Result<PoolMedium, String> {
    match text {
        "auto" => Ok(PoolMedium(None)),
        "dax" | "dram" | "file" => text
            .parse()
            .map(|kind| PoolMedium(Some(kind)))
            .map_err(|error: quipu_medium::MediumError| error.to_string()),
        _ => Err("use one of: auto, dax, dram, file".to_owned()),
    }
}

/// The medium of a pool that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct PoolMedium(pub Option<MediumKind>);

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Line::command().debug_assert();
    }

    #[test]
    fn every_command_teaches_by_examples() {
        assert_eq!(program::without_examples(&Line::command()), [""; 0]);
    }
}
