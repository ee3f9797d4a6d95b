//! Which segment to clean.
//!
//! Cleaning a segment copies what is live in it and gives the rest back, so the segment with the least live bytes gives
//! most for its copies. With one exception: tombstones are live until every segment that is older than they are is gone
//! (rule 4.6 of the design), so when they are many the oldest segments go first, whatever they hold.

use crate::heap::segments::Candidate;

/// Tombstones may take this share, as a divisor, of all record bytes before the oldest segments are cleaned for their sake.
const TOMBSTONE_SHARE: u64 = 16;

/// The segment to clean next, or `None` if cleaning would give nothing back. `capacity` is what a segment holds.
pub fn choose(candidates: &[Candidate], capacity: u64) -> Option<Candidate> {
    let total = |bytes: fn(&Candidate) -> u64| candidates.iter().map(bytes).sum::<u64>();
    let tombstones = total(|candidate| candidate.tombstones);
    if tombstones * TOMBSTONE_SHARE > total(|candidate| candidate.written) {
        // Unless the oldest is all that there is: then its tombstones have nobody left to outlive.
        return candidates.iter().min_by_key(|candidate| candidate.life).copied();
    }
    let dead = |candidate: &Candidate| candidate.garbage + candidate.expired;
    let gain = |candidate: &Candidate| capacity - candidate.written.min(capacity) + dead(candidate);
    candidates
        .iter()
        .filter(|candidate| dead(candidate) > 0)
        .max_by_key(|candidate| (gain(candidate), std::cmp::Reverse(candidate.life)))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::ZoneId;

    fn candidate(life: u64, written: u64, garbage: u64, tombstones: u64) -> Candidate {
        Candidate { zone: ZoneId(life as u32), life, written, garbage, expired: 0, tombstones }
    }

    #[test]
    fn the_segment_that_gives_most_back_goes_first() {
        let candidates = [candidate(1, 1000, 10, 0), candidate(2, 1000, 900, 0), candidate(3, 1000, 500, 0)];
        assert_eq!(choose(&candidates, 1000), Some(candidates[1]));
        // Room that was never written counts as well, but not alone: copying would only move it.
        let short = [candidate(1, 1000, 300, 0), candidate(2, 500, 100, 0), candidate(3, 10, 0, 0)];
        assert_eq!(choose(&short, 1000), Some(short[1]));
    }

    #[test]
    fn nothing_is_cleaned_for_nothing() {
        assert_eq!(choose(&[candidate(1, 1000, 0, 0), candidate(2, 200, 0, 0)], 1000), None);
        assert_eq!(choose(&[], 1000), None);
    }

    #[test]
    fn what_has_expired_counts_as_garbage() {
        let expired = Candidate { expired: 600, ..candidate(2, 1000, 0, 0) };
        let candidates = [candidate(1, 1000, 500, 0), expired, candidate(3, 1000, 0, 0)];
        assert_eq!(choose(&candidates, 1000), Some(expired));
    }

    #[test]
    fn many_tombstones_send_the_oldest_segment_first() {
        let candidates = [candidate(5, 1000, 900, 0), candidate(3, 1000, 0, 0), candidate(9, 1000, 0, 700)];
        assert_eq!(choose(&candidates, 1000).map(|chosen| chosen.life), Some(3));
    }
}
