//! `quipu-rivals index`: indexes alone, ours and others, in one process.

use crate::output::{Failure, Stages, json_line, print};
use quipu_bench::Config;
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_lab::bench::{IndexLoad, index_table, indexes};
use quipu_rivals::indexes::IndexChoice;

#[derive(clap::Args)]
pub struct Args {
    /// Indexes, separated by commas, or all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "alex,masstree,btree,congee")]
    index: Vec<OneOrAll<IndexChoice>>,
    #[command(flatten)]
    load: IndexLoad,
    /// The seed of keys and of their order.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object a line, one for each phase.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Measures, and prints the results, also if an index fails on the way.
    pub fn run(self) -> Result<(), Failure> {
        let Args { index, load, seed, json } = self;
        let config = load.apply(Config { seed, ..Config::default() });
        let (mut rows, mut refused) = (Vec::new(), None);
        let result = indexes(&config, &load, &chosen(&index), &Stages, &mut |row| {
            if json {
                refused = refused.take().or(json_line(&row).err());
            }
            rows.push(row);
        });
        refused.map_or(Ok(()), Err)?;
        if !json && !rows.is_empty() {
            print(&format!("{}\n\n{}", load.heading(&config), index_table(&rows)))?;
        }
        Ok(result?)
    }
}
