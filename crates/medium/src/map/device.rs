//! The system's facts about the device beneath a pool: the evidence for any claim about power loss.
//!
//! Everything is read from sysfs once, when a pool is mapped or probed. A fact that is missing stays missing:
//! the statement then makes the weaker claim. A devdax device in particular may be volatile memory (CXL, or
//! memory that firmware set aside). So only a region of the NVDIMM bus that says `nd_pmem` counts as
//! persistent.

use crate::arch::FlushKind;
use crate::node::Node;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the system describes its devices.
pub(crate) const SYSFS: &str = "/sys";

/// Alignment that devdax mappings need where the system does not say.
const ALIGN_DEFAULT: u64 = 2 << 20;

/// A device that a pool lies on, as far as the system describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmDevice {
    /// Its name, such as `pmem0` or `dax0.0`.
    pub name: String,
    /// The NVDIMM region it is part of, such as `region0`.
    pub region: Option<String>,
    /// The type that the region states, such as `nd_pmem`.
    pub region_type: Option<String>,
    /// Up to where stores are safe from a power loss: `memory_controller` or `cpu_cache`.
    pub persistence_domain: Option<String>,
    /// How often the modules of the region lost power before they had saved everything, summed.
    pub dirty_shutdowns: Option<u64>,
    /// The NUMA node it is attached to.
    pub node: Option<Node>,
    /// Its size in bytes, for a devdax device.
    pub size: Option<u64>,
    /// The unit of the length of a mapping, for a devdax device.
    pub align: u64,
}

impl PmDevice {
    /// The block device with this number, for a file on a file system. `None` if it has none (tmpfs,
    /// network).
    pub(crate) fn of_block(sysfs: &Path, device: u64) -> Option<PmDevice> {
        PmDevice::describe(sysfs, &device_folder(sysfs, "block", device)?)
    }

    /// The devdax device with this number. `None` if the number is another kind of character device's.
    pub(crate) fn of_character(sysfs: &Path, device: u64) -> Option<PmDevice> {
        let folder = device_folder(sysfs, "char", device)?;
        (subsystem(&folder)? == "dax").then(|| PmDevice::describe(sysfs, &folder))?
    }

    fn describe(sysfs: &Path, folder: &Path) -> Option<PmDevice> {
        let region = folder.ancestors().find(|ancestor| {
            name_of(ancestor).starts_with("region") && subsystem(ancestor).is_some_and(|bus| bus == "nd")
        });
        let node = folder.ancestors().take_while(|ancestor| *ancestor != sysfs).find_map(|ancestor| {
            // The system writes -1 where it does not know, which is no u16.
            Some(Node(read(&ancestor.join("numa_node"))?.parse().ok()?))
        });
        let number = |path: &str| read(&folder.join(path))?.parse::<u64>().ok();
        Some(PmDevice {
            name: name_of(folder),
            region: region.map(name_of),
            region_type: region.and_then(|region| read(&region.join("devtype"))),
            persistence_domain: region.and_then(|region| read(&region.join("persistence_domain"))),
            dirty_shutdowns: region.and_then(|region| dirty_shutdowns(sysfs, region)),
            node,
            size: number("size").filter(|_| subsystem(folder).is_some_and(|bus| bus == "dax")),
            align: number("align").or_else(|| number("dax_region/align")).unwrap_or(ALIGN_DEFAULT).max(4096),
        })
    }

    /// Whether the system says that this is persistent memory.
    pub fn is_persistent(&self) -> bool {
        self.region_type.as_deref() == Some("nd_pmem")
    }

    /// The flush that stores to this device need.
    ///
    /// None where the region proves that the caches themselves are saved. That holds on x86-64 only: stores
    /// become visible there in program order, so every acknowledged store is in the caches.
    pub(crate) fn flush(device: Option<&PmDevice>) -> Option<FlushKind> {
        let saved = device.is_some_and(|device| {
            device.is_persistent() && device.persistence_domain.as_deref() == Some("cpu_cache")
        });
        if saved && cfg!(target_arch = "x86_64") { Some(FlushKind::None) } else { FlushKind::detect() }
    }

    /// The facts, one a line, for a statement.
    pub(crate) fn evidence(&self) -> Vec<String> {
        let PmDevice { name, region, region_type, persistence_domain, dirty_shutdowns, .. } = self;
        let mut lines = Vec::new();
        match (region, region_type) {
            (Some(region), Some(kind)) => {
                lines.push(format!("{name} is part of {region}, a region of type {kind}"))
            }
            (Some(region), None) => lines.push(format!("{name} is part of {region}, whose type is not told")),
            (None, _) => lines.push(format!("{name} belongs to no NVDIMM region")),
        }
        if let Some(domain) = persistence_domain {
            lines.push(format!("the persistence domain is {domain}"));
        }
        if let Some(count) = dirty_shutdowns {
            lines.push(format!("{count} dirty shutdowns so far"));
        }
        lines
    }
}

fn device_folder(sysfs: &Path, class: &str, device: u64) -> Option<PathBuf> {
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    fs::canonicalize(sysfs.join("dev").join(class).join(number)).ok()
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The bus or class of a device.
fn subsystem(folder: &Path) -> Option<String> {
    Some(name_of(&fs::read_link(folder.join("subsystem")).ok()?))
}

/// A non-empty attribute.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A region lists its modules as `mapping0`, `mapping1` and so on, each beginning with the module's name.
fn dirty_shutdowns(sysfs: &Path, region: &Path) -> Option<u64> {
    let mut sum = None;
    for position in 0.. {
        let Some(mapping) = read(&region.join(format!("mapping{position}"))) else { break };
        let module = mapping.split(',').next().unwrap_or_default();
        let count = read(&sysfs.join("bus/nd/devices").join(module).join("nfit/dirty_shutdown"));
        if let Some(count) = count.and_then(|count| count.parse::<u64>().ok()) {
            sum = Some(sum.unwrap_or(0) + count);
        }
    }
    sum
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
