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

Fields of the JSON objects: name, paper, ordered, parts and switches (objects), settings (an object of objects \
with default, values and help), limits (a list).";

/// List the designs that a pool can have, each with its parts, its paper, its switches and settings.
///
/// Settings are chosen with --set NAME=VALUE when a pool is created, and for benchmarks.
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
            let Setting { name, values, help, .. } = setting;
            let value = setting.value(&defaults);
            ((*name).to_owned(), json!({ "default": value, "values": values, "help": help }))
        })
        .collect();
    let pairs = |pairs: &[(&str, &str)]| -> Map<String, Value> {
        pairs.iter().map(|(name, what)| ((*name).to_owned(), json!(what))).collect()
    };
    json!({
        "name": description.name,
        "paper": description.paper,
        "ordered": description.can.ordered,
        "parts": pairs(description.parts),
        "switches": pairs(SWITCHES),
        "settings": settings,
        "limits": description.limits,
    })
}

fn text(design: Design, description: &Description) -> String {
    let defaults = Options::default();
    let settings: String = Setting::of(design)
        .map(|setting| {
            let Setting { name, values, help, .. } = setting;
            let [help, values] = [*help, &format!("values: {values}")].map(|text| wrapped("      ", text));
            format!("    {name}={}\n{help}\n{values}\n", setting.value(&defaults))
        })
        .collect();
    let settings = if settings.is_empty() { settings } else { format!("  settings:\n{settings}") };
    let pairs = |title: &str, pairs: &[(&str, &str)]| -> String {
        let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, what): &(&str, &str)| wrapped(&format!("    {name:<width$}  "), what) + "\n";
        let lines: String = pairs.iter().map(line).collect();
        format!("  {title}:\n{lines}")
    };
    format!(
        "{}: {}\n{}{}{settings}  limits:\n{}",
        description.name,
        description.paper,
        pairs("parts", description.parts),
        pairs("switches", SWITCHES),
        description.limits.iter().map(|limit| wrapped("    ", limit) + "\n").collect::<String>(),
    )
}
