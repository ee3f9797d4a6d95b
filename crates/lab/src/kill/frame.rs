//! Acknowledgements on their way through the pipe.
//!
//! Each is one write of a short line, which a pipe takes whole or not at all, also from several threads and
//! from a process that is being killed.

use crate::action::Outcome;
use serde::{Deserialize, Serialize};

/// A call that returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Acknowledgement {
    pub thread: u64,
    /// Number of the call in the thread's plan.
    pub number: u64,
    /// Stamps around it.
    pub invoked: u64,
    pub returned: u64,
    /// Its answer; `None` if it was refused for want of room.
    pub outcome: Option<Outcome>,
}

impl Acknowledgement {
    /// The line.
    pub fn to_line(self) -> Vec<u8> {
        let mut line = serde_json::to_vec(&self).expect("numbers are always JSON");
        line.push(b'\n');
        line
    }

    /// All whole lines, read back; `None` if one of them is no acknowledgement.
    pub fn of_lines(bytes: &[u8]) -> Option<Vec<Acknowledgement>> {
        let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        whole.map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_read_back() {
        let outcomes = [Outcome::Done, Outcome::Did(true), Outcome::Did(false)];
        let saw = [None, Some(7), Some(u64::MAX)].map(Outcome::Saw);
        let outcomes = outcomes.into_iter().chain(saw).map(Some).chain([None]);
        let (mut lines, mut sent) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            sent.push(Acknowledgement { thread: 3, number: 9, invoked: 10, returned: 12, outcome });
            lines.extend(sent[sent.len() - 1].to_line());
        }
        assert_eq!(Acknowledgement::of_lines(&lines), Some(sent.clone()));
        let cut = &lines[..lines.len() - 1];
        assert_eq!(Acknowledgement::of_lines(cut).map(|read| read.len()), Some(sent.len() - 1));
        assert_eq!(Acknowledgement::of_lines(&lines[1..]), None);
    }
}
