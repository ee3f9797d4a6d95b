//! `quipu probe`: what a path is and survives.

use crate::failure::{Failure, Outcome};
use crate::output;
use quipu_medium::PmDevice;
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  quipu probe .
  quipu probe /mnt/pmem --json
  quipu probe /dev/dax0.0

Fields of the JSON object: path, filesystem, mount_point, free_bytes, map_sync, medium, flush, node, device \
(name, region, region_type, persistence_domain, dirty_shutdowns), durability, survives (process_crash, \
os_crash, power_loss: yes, no or unknown; evidence). What is not known is null.";

/// Show which failures a pool in a folder, file or device would survive.
///
/// The command creates and writes nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A folder, a file or a devdax device.
    path: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Prints the findings.
    pub fn run(self) -> Result<Outcome, Failure> {
        let probe = quipu_medium::probe(&self.path)?;
        let object = json!({
            "path": probe.path.to_string_lossy(),
            "filesystem": probe.filesystem,
            "mount_point": probe.mount_point.as_ref().map(|point| point.to_string_lossy()),
            "free_bytes": probe.free_bytes,
            "map_sync": probe.map_sync,
            "medium": probe.choice.name(),
            "flush": probe.flush.to_string(),
            "node": probe.node.map(|node| node.0),
            "device": probe.device.as_ref().map(device),
            "durability": probe.statement.durability.to_string(),
            "survives": output::statement_json(&probe.statement),
        });
        output::told(self.json, &object, || probe.to_string())?;
        Ok(Outcome::Fine)
    }
}

fn device(device: &PmDevice) -> Value {
    json!({
        "name": device.name,
        "region": device.region,
        "region_type": device.region_type,
        "persistence_domain": device.persistence_domain,
        "dirty_shutdowns": device.dirty_shutdowns,
    })
}
