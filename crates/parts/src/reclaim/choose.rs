//! Which segment to clean.
//!
//! Cleaning a segment copies what is live in it and gives the rest back, so the segment with the least live bytes gives
//! most for its copies. With two exceptions:
//! - Tombstones are live until every segment that is older than they are is gone (rule 4.6 of the design), so when they
//!   are many the oldest segments go first, whatever they hold. That helps none that is younger than a segment which
//!   cannot be cleaned; those do not count.
//! - A segment that was sealed before it was full, as each end of a run does, holds room that nobody can use. It alone is
//!   not worth a copy, which would only move it; but two whose records fit into one segment are.
//!
//! Every choice must make less of what led to it, or compaction would go on for ever: two such segments become one, and
//! tombstones that were copied are in a segment as young as can be.

use crate::heap::segments::Candidate;

/// Tombstones may take this share, as a divisor, of all record bytes before the oldest segments are cleaned for their sake.
const TOMBSTONE_SHARE: u64 = 16;

/// What a choice depends on beside the candidates.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Bytes that a segment holds.
    pub capacity: u64,
    /// Bytes that a segment must give back: with little, all the copying would be for nothing.
    pub least: u64,
    /// Room in the segment that records would move to.
    pub room: u64,
    /// The lowest life of all segments that are no candidates.
    pub oldest_other: u64,
}

/// The segment to clean next, or `None` if cleaning would give nothing back.
pub fn choose(candidates: &[Candidate], terms: &Terms) -> Option<Candidate> {
    let written = candidates.iter().map(|candidate| candidate.written).sum::<u64>();
    let may_go = candidates.iter().filter(|candidate| candidate.life < terms.oldest_other);
    if may_go.map(|candidate| candidate.tombstones).sum::<u64>() * TOMBSTONE_SHARE > written {
        // Unless the oldest is all that there is: then its tombstones have nobody left to outlive.
        return candidates.iter().min_by_key(|candidate| candidate.life).copied();
    }
    let dead = |candidate: &Candidate| candidate.garbage + candidate.expired;
    let gain = |candidate: &Candidate| candidate.unused + dead(candidate);
    let live = |candidate: &Candidate| terms.capacity.saturating_sub(gain(candidate));
    let mut least_live = [u64::MAX; 2];
    for candidate in candidates {
        if live(candidate) < least_live[1] {
            least_live[1] = live(candidate);
            least_live.sort_unstable();
        }
    }
    let is_worth = |candidate: &&Candidate| {
        let other = if live(candidate) == least_live[0] { least_live[1] } else { least_live[0] };
        let fits = live(candidate) <= terms.room || live(candidate).saturating_add(other) <= terms.capacity;
        (dead(candidate) > 0 && gain(candidate) >= terms.least) || (candidate.unused > 0 && fits)
    };
    candidates
        .iter()
        .filter(is_worth)
        .max_by_key(|candidate| (gain(candidate), std::cmp::Reverse(candidate.life)))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::ZoneId;

    const TERMS: Terms = Terms { capacity: 1000, least: 1, room: 0, oldest_other: u64::MAX };

    fn candidate(life: u64, written: u64, garbage: u64, tombstones: u64) -> Candidate {
        let (expired, unused) = (0, 1000 - written);
        Candidate { zone: ZoneId(life as u32), life, written, garbage, expired, tombstones, unused }
    }

    #[test]
    fn the_segment_that_gives_most_back_goes_first() {
        let candidates = [candidate(1, 1000, 10, 0), candidate(2, 1000, 900, 0), candidate(3, 1000, 500, 0)];
        assert_eq!(choose(&candidates, &TERMS), Some(candidates[1]));
        // Room that was never written counts as well.
        let short = [candidate(1, 1000, 300, 0), candidate(2, 500, 100, 0)];
        assert_eq!(choose(&short, &TERMS), Some(short[1]));
    }

    #[test]
    fn nothing_is_cleaned_for_nothing() {
        assert_eq!(choose(&[candidate(1, 1000, 0, 0), candidate(2, 200, 0, 0)], &TERMS), None);
        assert_eq!(choose(&[], &TERMS), None);
        let little = [candidate(1, 1000, 10, 0)];
        assert_eq!(choose(&little, &TERMS), Some(little[0]));
        assert_eq!(choose(&little, &Terms { least: 11, ..TERMS }), None);
    }

    #[test]
    fn segments_that_were_cut_short_are_put_together() {
        let short = [candidate(1, 1000, 0, 0), candidate(2, 700, 0, 0), candidate(3, 300, 0, 0)];
        assert_eq!(choose(&short, &TERMS), Some(short[2]));
        // The first is copied, and the second fits beside it.
        assert_eq!(choose(&short[..2], &Terms { room: 699, ..TERMS }), None);
        assert_eq!(choose(&short[..2], &Terms { room: 700, ..TERMS }), Some(short[1]));
        let full = [candidate(2, 701, 0, 0), short[2]];
        assert_eq!(choose(&full, &TERMS), None);
        // One that whoever comes next may still write to is not short.
        let left = [Candidate { unused: 0, ..short[1] }, short[2]];
        assert_eq!(choose(&left, &TERMS), None);
    }

    #[test]
    fn what_has_expired_counts_as_garbage() {
        let expired = Candidate { expired: 600, ..candidate(2, 1000, 0, 0) };
        let candidates = [candidate(1, 1000, 500, 0), expired, candidate(3, 1000, 0, 0)];
        assert_eq!(choose(&candidates, &TERMS), Some(expired));
    }

    #[test]
    fn many_tombstones_send_the_oldest_segment_first() {
        let candidates = [candidate(5, 1000, 900, 0), candidate(3, 1000, 0, 0), candidate(9, 1000, 0, 700)];
        assert_eq!(choose(&candidates, &TERMS).map(|chosen| chosen.life), Some(3));
        // But not if they have to stay because of one that cannot be cleaned.
        let chosen = choose(&candidates, &Terms { oldest_other: 8, ..TERMS });
        assert_eq!(chosen.map(|chosen| chosen.life), Some(5));
    }
}
