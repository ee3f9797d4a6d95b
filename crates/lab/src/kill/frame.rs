//! Acknowledgements on their way through the pipe.
//!
//! Each is one write of a few bytes, which a pipe takes whole or not at all, also from several threads and from a
//! process that is being killed.

use crate::linear::{Outcome, State};

/// Words of an acknowledgement.
const WORDS: usize = 6;
/// Bytes of it.
pub(super) const BYTES: usize = WORDS * 8;

/// A call that returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    pub thread: u64,
    /// Number of the call in the thread's plan.
    pub number: u64,
    /// Stamps around it.
    pub invoked: u64,
    pub returned: u64,
    /// What it returned; `None` if it was refused for want of room.
    pub outcome: Option<Outcome>,
}

impl Acknowledgement {
    pub fn to_bytes(self) -> [u8; BYTES] {
        let (kind, value) = match self.outcome {
            None => (0, 0),
            Some(Outcome::Done) => (1, 0),
            Some(Outcome::Did(did)) => (2, u64::from(did)),
            Some(Outcome::Saw(None)) => (3, 0),
            Some(Outcome::Saw(Some(value))) => (4, value),
        };
        let words: [u64; WORDS] =
            [self.thread | kind << 32, self.number, self.invoked, self.returned, value, SEAL];
        let mut bytes = [0; BYTES];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads it back; `None` for bytes that are no acknowledgement.
    pub fn from_bytes(bytes: &[u8]) -> Option<Acknowledgement> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>();
        let (&[first, number, invoked, returned, value, SEAL], []) = (&words[..], rest) else { return None };
        let saw = |state: State| Some(Outcome::Saw(state));
        let outcome = match (first >> 32, value) {
            (0, 0) => None,
            (1, 0) => Some(Outcome::Done),
            (2, 0 | 1) => Some(Outcome::Did(value == 1)),
            (3, 0) => saw(None),
            (4, value) => saw(Some(value)),
            _ => return None,
        };
        Some(Acknowledgement { thread: first & 0xffff_ffff, number, invoked, returned, outcome })
    }
}

/// The last word: something else on standard output is not taken for an acknowledgement.
const SEAL: u64 = u64::from_le_bytes(*b"acknowl.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_read_back() {
        let outcomes = [Outcome::Done, Outcome::Did(true), Outcome::Did(false)];
        let saw = [None, Some(7), Some(u64::MAX)].map(Outcome::Saw);
        let outcomes = outcomes.into_iter().chain(saw).map(Some).chain([None]);
        for outcome in outcomes {
            let sent = Acknowledgement { thread: 3, number: 9, invoked: 10, returned: 12, outcome };
            assert_eq!(Acknowledgement::from_bytes(&sent.to_bytes()), Some(sent));
            assert_eq!(Acknowledgement::from_bytes(&sent.to_bytes()[1..]), None);
        }
        assert_eq!(Acknowledgement::from_bytes(&[0; BYTES]), None);
    }
}
