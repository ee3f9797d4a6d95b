//! The failures that a write survives, said in words before anyone relies on them.
//!
//! "Durable" means nothing without the failure that it is meant against. A [`Durability`] is the user's wish.
//! A [`Statement`] is the proven answer of this medium on this machine, with the evidence. Where the evidence
//! is missing, the answer is unknown, which a careful reader takes as no.
//!
//! Statements are made by pure functions of facts, so every case is tested without the hardware.

use crate::arch::FlushKind;
use crate::error::MediumError;
use crate::map::{MediumKind, PmDevice};
use std::fmt;
use std::str::FromStr;

/// Against which failures an acknowledged write is safe on a mapped file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A crash of the process: no system call and no flush on the write path.
    #[default]
    Process,
    /// Also a crash of the system, except for the writes of the last so many milliseconds.
    Interval {
        /// The longest time for which a write may be at risk.
        ms: u64,
    },
    /// Also a power loss, from the acknowledgement on.
    Always,
}

impl Durability {
    /// The interval that the word `interval` alone stands for.
    pub const INTERVAL_DEFAULT_MS: u64 = 1000;

    /// The word for it on the command line, without the length of an interval.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Process => "process",
            Durability::Interval { .. } => "interval",
            Durability::Always => "always",
        }
    }
}

/// The word that [`FromStr`] reads back; the length of an interval follows only if it is not the default.
impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Interval { ms } if *ms != Durability::INTERVAL_DEFAULT_MS => {
                write!(f, "interval:{ms}")
            }
            _ => f.write_str(self.name()),
        }
    }
}

impl FromStr for Durability {
    type Err = MediumError;

    fn from_str(text: &str) -> Result<Durability, MediumError> {
        let interval = |text: &str| text.strip_prefix("interval:")?.parse().ok().filter(|ms| *ms > 0);
        match text {
            "process" => Ok(Durability::Process),
            "interval" => Ok(Durability::Interval { ms: Durability::INTERVAL_DEFAULT_MS }),
            "always" => Ok(Durability::Always),
            _ => {
                interval(text).map(|ms| Durability::Interval { ms }).ok_or_else(|| MediumError::UnknownWord {
                    text: text.to_owned(),
                    what: "durability",
                    choices: "process, interval, interval:MILLISECONDS, always",
                })
            }
        }
    }
}

/// Whether acknowledged writes survive a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Survives {
    /// All of them do.
    Yes,
    /// Some or all may be lost.
    No,
    /// The evidence does not suffice; rely on nothing.
    Unknown,
}

impl Survives {
    /// The more it promises, the higher.
    fn rank(self) -> u8 {
        match self {
            Survives::No => 0,
            Survives::Unknown => 1,
            Survives::Yes => 2,
        }
    }
}

/// An answer about one failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub survives: Survives,
    /// The reason, as the second half of a sentence.
    pub because: String,
}

impl Answer {
    fn new(survives: Survives, because: impl Into<String>) -> Answer {
        Answer { survives, because: because.into() }
    }

    /// The answer about a crash of the process for a shared mapping of a file.
    fn kept_by_the_system() -> Answer {
        Answer::new(Survives::Yes, "the mapped pages belong to the system, not to the process")
    }
}

/// The failures that writes survive on a given medium, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The kind of medium.
    pub medium: MediumKind,
    /// The durability in force.
    pub durability: Durability,
    /// The process ends at any instruction; the system goes on.
    pub process_crash: Answer,
    /// The operating system stops; power stays or comes back after a reset.
    pub os_crash: Answer,
    /// Power fails without warning.
    pub power_loss: Answer,
    /// The facts behind the answers, a line each.
    pub evidence: Vec<String>,
}

impl Statement {
    /// The statement of a medium for which a crash of the system and a loss of power are the same.
    fn of(
        medium: MediumKind,
        durability: Durability,
        process_crash: Answer,
        system_ends: &str,
        evidence: Vec<String>,
    ) -> Statement {
        let gone = || Answer::new(Survives::No, system_ends);
        Statement { medium, durability, process_crash, os_crash: gone(), power_loss: gone(), evidence }
    }

    /// The statement of memory whose contents end with this process.
    fn of_process(
        medium: MediumKind,
        durability: Durability,
        because: &str,
        evidence: impl Into<String>,
    ) -> Statement {
        let process_crash = Answer::new(Survives::No, because);
        Statement::of(medium, durability, process_crash, because, vec![evidence.into()])
    }

    pub(crate) fn anonymous() -> Statement {
        let (medium, durability) = (MediumKind::Dram, Durability::Process);
        let because = "the memory ends with the process";
        Statement::of_process(medium, durability, because, "anonymous memory, for measuring")
    }

    pub(crate) fn simulated() -> Statement {
        let because = "the simulated medium lives in this process";
        let evidence = "a simulated failure keeps what was flushed and fenced";
        Statement::of_process(MediumKind::Sim, Durability::Always, because, evidence)
    }

    /// A file of some medium that was opened for reading only.
    pub(crate) fn read_only(medium: MediumKind, filesystem: &str) -> Statement {
        let because = "the pool is open for reading only, and changes end with this process";
        let evidence = format!("a private mapping of a file on {filesystem}");
        Statement::of_process(medium, Durability::Process, because, evidence)
    }

    /// A file on a memory file system, as either medium that can use one.
    pub(crate) fn memory_file(medium: MediumKind) -> Statement {
        let gone = "the file is in memory and ends with the system";
        let evidence = vec!["a file on tmpfs, which is memory".to_owned()];
        Statement::of(medium, Durability::Process, Answer::kept_by_the_system(), gone, evidence)
    }

    /// A mapped file with durability `process`, the only one there is for files so far. A file system that
    /// writes changed blocks to a new place may be told to leave those of one file [in
    /// place](crate::map::is_in_place).
    pub(crate) fn file(filesystem: &str, in_place: bool) -> Statement {
        let gone = "pages that the system has not yet written to the device are lost";
        let mut evidence =
            vec![format!("a mapped file on {filesystem}, written back by the system in its own time")];
        if matches!(filesystem, "btrfs" | "zfs" | "bcachefs") && !in_place {
            evidence.push(format!(
                "{filesystem} writes changed pages of this file to a new place, so a full disk can still end the \
                 process by a signal; export the pool into one that is created there, where files can be without \
                 copy-on-write (chattr +C)"
            ));
        }
        Statement::of(MediumKind::File, Durability::Process, Answer::kept_by_the_system(), gone, evidence)
    }

    /// Directly mapped memory. `virtual_machine` as in [`crate::arch::virtual_machine`].
    pub(crate) fn dax(
        device: Option<&PmDevice>,
        flush: FlushKind,
        virtual_machine: Option<bool>,
    ) -> Statement {
        let persistent = device.is_some_and(PmDevice::is_persistent);
        let domain = device.and_then(|device| device.persistence_domain.as_deref());
        let os_crash = if persistent {
            Answer::new(Survives::Yes, "stores reach persistent memory without the system's help")
        } else {
            Answer::new(Survives::Unknown, "nothing shows that this memory keeps its contents over a restart")
        };
        let power_loss = match (persistent, domain, virtual_machine) {
            (false, _, _) => Answer::new(Survives::Unknown, "nothing shows that this memory is persistent"),
            (true, _, Some(true)) => Answer::new(
                Survives::Unknown,
                "this is a virtual machine, and its host decides where the bytes are",
            ),
            (true, Some("memory_controller" | "cpu_cache"), Some(false)) => {
                Answer::new(Survives::Yes, "every acknowledged write has reached the persistence domain")
            }
            (true, Some("memory_controller" | "cpu_cache"), None) => {
                Answer::new(Survives::Unknown, "nothing shows that this is not a virtual machine")
            }
            (true, _, _) => {
                Answer::new(Survives::Unknown, "the platform does not say what it saves when power fails")
            }
        };
        let mut evidence = vec!["MAP_SYNC granted".to_owned()];
        match device {
            Some(device) => evidence.extend(device.evidence()),
            None => evidence.push("the device beneath is not described by the system".to_owned()),
        }
        evidence.push(match flush {
            FlushKind::None => "the caches are saved too, so lines need no flush".to_owned(),
            flush => format!("lines are written back with {flush}"),
        });
        if virtual_machine == Some(true) {
            evidence.push("the processor says that this is a virtual machine".to_owned());
        }
        Statement {
            medium: MediumKind::Dax,
            durability: Durability::Always,
            process_crash: Answer::new(
                Survives::Yes,
                "the mapped memory belongs to the device, not to the process",
            ),
            os_crash,
            power_loss,
            evidence,
        }
    }

    /// The statement of a pool on both media: what both promise, on the evidence of both.
    #[must_use]
    pub fn and(self, other: &Statement) -> Statement {
        let weaker = |own: Answer, other: &Answer| {
            if other.survives.rank() < own.survives.rank() { other.clone() } else { own }
        };
        let mut evidence = self.evidence;
        for line in &other.evidence {
            if !evidence.contains(line) {
                evidence.push(line.clone());
            }
        }
        Statement {
            process_crash: weaker(self.process_crash, &other.process_crash),
            os_crash: weaker(self.os_crash, &other.os_crash),
            power_loss: weaker(self.power_loss, &other.power_loss),
            evidence,
            ..self
        }
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Medium {}, durability {}.", self.medium, self.durability)?;
        let failures = [
            ("a crash of this process", &self.process_crash),
            ("a crash of the operating system", &self.os_crash),
            ("a power loss", &self.power_loss),
        ];
        for (failure, Answer { survives, because }) in failures {
            let outcome = match survives {
                Survives::Yes => "every acknowledged write is there",
                Survives::No => "acknowledged writes may be gone",
                Survives::Unknown => "count on nothing",
            };
            writeln!(f, "After {failure}, {outcome}: {because}.")?;
        }
        write!(f, "Evidence: {}.", self.evidence.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pmem(domain: Option<&str>) -> PmDevice {
        PmDevice {
            name: "dax0.0".to_owned(),
            region: Some("region0".to_owned()),
            region_type: Some("nd_pmem".to_owned()),
            persistence_domain: domain.map(str::to_owned),
            dirty_shutdowns: Some(2),
            node: None,
            size: Some(1 << 30),
            align: 2 << 20,
        }
    }

    fn answers(statement: &Statement) -> [Survives; 3] {
        [statement.process_crash.survives, statement.os_crash.survives, statement.power_loss.survives]
    }

    #[test]
    fn only_a_proven_persistence_domain_on_bare_metal_claims_power_loss() {
        use Survives::{Unknown, Yes};
        let cases = [
            (Some(pmem(Some("memory_controller"))), Some(false), [Yes, Yes, Yes]),
            (Some(pmem(Some("cpu_cache"))), Some(false), [Yes, Yes, Yes]),
            (Some(pmem(Some("memory_controller"))), Some(true), [Yes, Yes, Unknown]),
            (Some(pmem(Some("memory_controller"))), None, [Yes, Yes, Unknown]),
            (Some(pmem(Some("something_new"))), Some(false), [Yes, Yes, Unknown]),
            (Some(pmem(None)), Some(false), [Yes, Yes, Unknown]),
            (
                Some(PmDevice { region_type: Some("nd_volatile".to_owned()), ..pmem(Some("cpu_cache")) }),
                Some(false),
                [Yes, Unknown, Unknown],
            ),
            (None, Some(false), [Yes, Unknown, Unknown]),
        ];
        for (device, machine, expected) in cases {
            let statement = Statement::dax(device.as_ref(), FlushKind::Clwb, machine);
            assert_eq!(answers(&statement), expected, "{statement}");
        }
    }

    #[test]
    fn memory_and_files_claim_no_more_than_they_keep() {
        use Survives::{No, Yes};
        assert_eq!(answers(&Statement::anonymous()), [No, No, No]);
        assert_eq!(answers(&Statement::simulated()), [No, No, No]);
        assert_eq!(answers(&Statement::memory_file(MediumKind::Dram)), [Yes, No, No]);
        assert_eq!(answers(&Statement::file("ext4", false)), [Yes, No, No]);
        for medium in [MediumKind::Dram, MediumKind::File, MediumKind::Dax] {
            assert_eq!(answers(&Statement::read_only(medium, "ext4")), [No, No, No]);
        }
        assert!(Statement::file("btrfs", false).evidence.join(" ").contains("full disk"));
        assert!(!Statement::file("btrfs", true).evidence.join(" ").contains("full disk"));
    }

    #[test]
    fn a_statement_reads_as_sentences() {
        let text = Statement::dax(Some(&pmem(None)), FlushKind::Clwb, Some(false)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines.iter().all(|line| line.ends_with('.') && line.len() < 200), "{text}");
        assert!(lines[1].starts_with("After a crash of this process, every acknowledged write is there"));
        assert!(lines[3].starts_with("After a power loss, count on nothing: the platform does not say"));
        assert!(lines[4].contains("MAP_SYNC granted") && lines[4].contains("2 dirty shutdowns"));
    }

    #[test]
    fn words_round_trip_and_others_are_refused() {
        for text in ["process", "interval", "interval:250", "always"] {
            assert_eq!(text.parse::<Durability>().unwrap().to_string(), text);
        }
        assert_eq!("interval".parse::<Durability>().unwrap(), Durability::Interval { ms: 1000 });
        for text in ["", "Process", "interval:", "interval:0", "interval:x", "sometimes"] {
            assert!(
                text.parse::<Durability>().unwrap_err().to_string().contains("interval:MILLISECONDS"),
                "{text}"
            );
        }
        for kind in [MediumKind::Dram, MediumKind::File, MediumKind::Dax, MediumKind::Sim] {
            assert_eq!(kind.to_string().parse::<MediumKind>().unwrap(), kind);
        }
        assert!("disk".parse::<MediumKind>().unwrap_err().to_string().contains("dram, file, dax, sim"));
    }
}
