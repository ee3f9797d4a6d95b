//! `quipu designs`: what a pool can be.

use crate::failure::{Failure, Outcome};
use crate::output::{self, wrapped};
use quipu::designs::{Description, SWITCHES};
use quipu::{Design, Options, Setting};
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "\
Examples:
  quipu designs
  quipu designs --json

Fields of the JSON objects: name, paper, ordered, tables (whether its pools have any), parts and switches (objects), settings (an object of objects \
with default, values, help and kept: true if the pool keeps it, false if each opening chooses it), limits (a list).";

/// List the designs of pools, with their parts and settings.
///
/// --set NAME=VALUE chooses settings of a pool when it is created, and all settings for benchmarks.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print one JSON object a line, one for each design.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Prints all designs.
    pub fn run(self) -> Result<Outcome, Failure> {
        for design in Design::ALL {
            let description = design.description();
            output::told(self.json, &object(*design, description), || text(*design, description))?;
        }
        Ok(Outcome::Fine)
    }
}

fn object(design: Design, description: &Description) -> Value {
    let defaults = Options::default();
    let settings: Map<String, Value> = Setting::of(design)
        .map(|setting| {
            let Setting { name, help, .. } = setting;
            let (value, values) = (setting.value(&defaults), setting.values());
            let kept = setting.is_kept();
            ((*name).to_owned(), json!({ "default": value, "values": values, "help": help, "kept": kept }))
        })
        .collect();
    let pairs = |pairs: &[(&str, &str)]| -> Map<String, Value> {
        pairs.iter().map(|(name, what)| ((*name).to_owned(), json!(what))).collect()
    };
    json!({
        "name": description.name,
        "paper": description.paper,
        "ordered": description.can.ordered,
        "tables": description.can.tables,
        "parts": pairs(description.parts),
        "switches": pairs(SWITCHES),
        "settings": settings,
        "limits": design.limits().collect::<Vec<_>>(),
    })
}

fn text(design: Design, description: &Description) -> String {
    let defaults = Options::default();
    let settings = |title: &str, kept: bool| -> String {
        let own = Setting::of(design).filter(|setting| setting.is_kept() == kept);
        let lines: String = own
            .map(|setting| {
                let values = format!("values: {}", setting.values());
                let [help, values] = [setting.help, &values].map(|text| wrapped("      ", text));
                format!("    {}={}\n{help}\n{values}\n", setting.name, setting.value(&defaults))
            })
            .collect();
        if lines.is_empty() { lines } else { format!("  {title}:\n{lines}") }
    };
    let pairs = |title: &str, pairs: &[(&str, &str)]| -> String {
        let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, what): &(&str, &str)| wrapped(&format!("    {name:<width$}  "), what) + "\n";
        let lines: String = pairs.iter().map(line).collect();
        format!("  {title}:\n{lines}")
    };
    format!(
        "{}: {}\n{}{}{}{}  limits:\n{}",
        description.name,
        description.paper,
        pairs("parts", description.parts),
        pairs("switches", SWITCHES),
        settings("settings of a pool, which keeps them", true),
        settings("settings of a handle, chosen at each opening", false),
        design.limits().map(|limit| wrapped("    ", &limit) + "\n").collect::<String>(),
    )
}
