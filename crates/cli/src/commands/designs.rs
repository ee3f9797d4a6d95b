//! `quipu designs`: what a pool can be.

use crate::failure::{Failure, Outcome};
use crate::output;
use quipu::Design;
use quipu::designs::Description;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "\
Examples:
  quipu designs
  quipu designs --json

Fields of the JSON objects: name, paper, ordered, parts and switches (objects), limits (a list).";

/// List the designs that a pool can have, each with its parts, its paper and its switches.
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
            if self.json {
                output::json_line(&object(description))?;
            } else {
                output::line(text(description))?;
            }
        }
        Ok(Outcome::Fine)
    }
}

fn object(description: &Description) -> Value {
    let pairs = |pairs: &[(&str, &str)]| -> Map<String, Value> {
        pairs.iter().map(|(name, what)| ((*name).to_owned(), json!(what))).collect()
    };
    json!({
        "name": description.name,
        "paper": description.paper,
        "ordered": description.ordered,
        "parts": pairs(description.parts),
        "switches": pairs(description.switches),
        "limits": description.limits,
    })
}

fn text(description: &Description) -> String {
    let pairs = |title: &str, pairs: &[(&str, &str)]| -> String {
        let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines: String =
            pairs.iter().map(|(name, what)| format!("    {name:<width$}  {what}\n")).collect();
        format!("  {title}:\n{lines}")
    };
    format!(
        "{}: {}\n{}{}  limits:\n{}",
        description.name,
        description.paper,
        pairs("parts", description.parts),
        pairs("switches", description.switches),
        description.limits.iter().map(|limit| format!("    {limit}\n")).collect::<String>(),
    )
}
