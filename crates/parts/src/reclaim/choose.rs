//! The choice of the segments to clean.
//!
//! Cleaning copies a segment's live records and frees the rest, so a segment with few live bytes yields most
//! for its copies. But a segment that was filled just now loses more records while it waits, since a key that
//! is written often is soon written again. The live records of an old segment stay live, and its garbage is
//! idle until it is cleaned. So a segment's worth is the bytes that it yields for each byte copied, times its
//! age (Rosenblum & Ousterhout, "The Design and Implementation of a Log-Structured File System", TOCS 1992,
//! section 3.6). To take the segment with the least live bytes always is right only for uniform loads. There
//! are two exceptions:
//! - Tombstones are live until every segment that is older than they are is gone (rule 4.6 of the design). So
//!   when they are many, the segments that hold back the lowest numbers go first, for their age or for copies
//!   of older records that they may have. This does not help tombstones younger than a segment that cannot be
//!   cleaned; those do not count.
//! - A segment that was sealed before it was full, as at the end of a run, has room that nobody can use. A
//!   copy of one such segment only moves it. Two whose records fit into one segment are worth a copy. If
//!   nothing else yields anything, one alone is worth it for a caller that needs a place: there is room
//!   behind the copies.
//!
//! Every choice must reduce its own cause, or compaction would never end: two short segments become one, and
//! copied tombstones are in a segment as young as can be.

use crate::heap::segments::Candidate;
use std::cmp::Reverse;

/// The terms of a choice beside the candidates.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Bytes that a segment holds.
    pub capacity: u64,
    /// Bytes that a segment must yield: with few, all the copying would be for nothing.
    pub least: u64,
    /// Room in the segment that records move to.
    pub room: u64,
    /// The number from which on segments that are no candidates hold tombstones.
    pub oldest_other: u64,
    /// Bytes of tombstones to tolerate before the oldest segments are cleaned for their sake.
    pub tombstones: u64,
    /// Unused bytes for which a segment is worth a copy by itself; a value above the capacity disables that.
    pub place: u64,
}

/// The segments to clean next, at most `most`, in this order; none if cleaning would yield nothing.
pub fn choose(candidates: &[Candidate], terms: &Terms, most: usize) -> Vec<Candidate> {
    let may_go = candidates.iter().filter(|candidate| candidate.life < terms.oldest_other);
    if may_go.map(|candidate| candidate.tombstones).sum::<u64>() > terms.tombstones {
        // If the oldest is the only one, its tombstones have no other segment to outlive. Only one is chosen,
        // since the others' worth depends on its outcome.
        return candidates.iter().min_by_key(|candidate| candidate.oldest).copied().into_iter().collect();
    }
    let mut least_live = [u64::MAX; 2];
    for candidate in candidates {
        let live = live(candidate, terms);
        if live < least_live[1] {
            least_live[1] = live;
            least_live.sort_unstable();
        }
    }
    let gives = |candidate: &Candidate| dead(candidate) > 0 && gain(candidate) >= terms.least;
    let joins = |candidate: &Candidate| {
        let live = live(candidate, terms);
        let other = if live == least_live[0] { least_live[1] } else { least_live[0] };
        candidate.unused > 0 && (live <= terms.room || live.saturating_add(other) <= terms.capacity)
    };
    // Lives are numbers of the pool's clock, which advances with every write. The youngest candidate has an
    // age as well.
    let now = candidates.iter().map(|candidate| candidate.life).max().unwrap_or_default() + 1;
    // Worth is not negative, and the bits of a non-negative float sort like the float.
    let rank = |candidate: &Candidate| (Reverse(worth(candidate, terms, now).to_bits()), candidate.life);
    let ranked = candidates.iter().map(|candidate| (rank(candidate), candidate));
    let mut chosen: Vec<_> = ranked.filter(|(_, candidate)| gives(candidate) || joins(candidate)).collect();
    // Whether another segment joins depends on the room that the first one leaves.
    let first = chosen.iter().map(|(rank, _)| *rank).min();
    chosen.retain(|(rank, candidate)| Some(*rank) == first || gives(candidate));
    if chosen.is_empty() {
        let opens = candidates.iter().filter(|candidate| candidate.unused >= terms.place);
        return opens.max_by_key(|candidate| candidate.unused).copied().into_iter().collect();
    }
    // Most of many candidates are not chosen, so they need not be sorted.
    if chosen.len() > most {
        chosen.select_nth_unstable_by_key(most, |(rank, _)| *rank);
        chosen.truncate(most);
    }
    chosen.sort_unstable_by_key(|(rank, _)| *rank);
    chosen.into_iter().map(|(_, candidate)| *candidate).collect()
}

fn dead(candidate: &Candidate) -> u64 {
    candidate.garbage + candidate.expired
}

fn gain(candidate: &Candidate) -> u64 {
    candidate.unused + dead(candidate)
}

fn live(candidate: &Candidate, terms: &Terms) -> u64 {
    terms.capacity.saturating_sub(gain(candidate))
}

/// The bytes that cleaning yields for each byte copied, times the segment's age; infinite if nothing is
/// copied.
fn worth(candidate: &Candidate, terms: &Terms, now: u64) -> f64 {
    gain(candidate) as f64 / live(candidate, terms) as f64 * (now - candidate.life) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::ZoneId;

    const TERMS: Terms =
        Terms { capacity: 1000, least: 1, room: 0, oldest_other: u64::MAX, tombstones: 699, place: u64::MAX };

    fn candidate(life: u64, written: u64, garbage: u64, tombstones: u64) -> Candidate {
        let (expired, unused) = (0, 1000 - written);
        let (zone, oldest) = (ZoneId(life as u32), life);
        Candidate { zone, life, oldest, written, garbage, expired, tombstones, unused }
    }

    fn first(candidates: &[Candidate], terms: &Terms) -> Option<Candidate> {
        choose(candidates, terms, 1).first().copied()
    }

    #[test]
    fn the_segment_that_gives_most_back_goes_first() {
        let candidates = [candidate(1, 1000, 10, 0), candidate(2, 1000, 900, 0), candidate(3, 1000, 500, 0)];
        assert_eq!(first(&candidates, &TERMS), Some(candidates[1]));
        // Room that was never written counts as well.
        let short = [candidate(1, 1000, 300, 0), candidate(2, 500, 100, 0)];
        assert_eq!(first(&short, &TERMS), Some(short[1]));
    }

    #[test]
    fn the_old_goes_before_the_young_that_has_a_little_less_left() {
        let candidates =
            [candidate(100, 1000, 300, 0), candidate(900, 1000, 400, 0), candidate(1000, 1000, 0, 0)];
        assert_eq!(choose(&candidates, &TERMS, 5), candidates[..2]);
        // But not before one that costs nothing.
        let empty = [candidate(100, 1000, 300, 0), candidate(900, 1000, 1000, 0)];
        assert_eq!(first(&empty, &TERMS), Some(empty[1]));
        let equal = [candidate(9, 1000, 1000, 0), candidate(5, 1000, 1000, 0), candidate(7, 1000, 1000, 0)];
        assert_eq!(choose(&equal, &TERMS, 2), [equal[1], equal[2]]);
    }

    #[test]
    fn nothing_is_cleaned_for_nothing() {
        assert_eq!(first(&[candidate(1, 1000, 0, 0), candidate(2, 200, 0, 0)], &TERMS), None);
        assert_eq!(first(&[], &TERMS), None);
        let little = [candidate(1, 1000, 10, 0)];
        assert_eq!(first(&little, &TERMS), Some(little[0]));
        assert_eq!(first(&little, &Terms { least: 11, ..TERMS }), None);
    }

    #[test]
    fn segments_that_were_cut_short_are_put_together() {
        let short = [candidate(1, 1000, 0, 0), candidate(2, 700, 0, 0), candidate(3, 300, 0, 0)];
        assert_eq!(first(&short, &TERMS), Some(short[2]));
        // The third is copied first; then the next choice sees whether another fits.
        assert_eq!(choose(&short, &TERMS, 5), [short[2]]);
        // The first is copied, and the second fits beside it.
        assert_eq!(first(&short[..2], &Terms { room: 699, ..TERMS }), None);
        assert_eq!(first(&short[..2], &Terms { room: 700, ..TERMS }), Some(short[1]));
        let full = [candidate(2, 701, 0, 0), short[2]];
        assert_eq!(first(&full, &TERMS), None);
        // A segment that a client may still continue is not short.
        let left = [Candidate { unused: 0, ..short[1] }, short[2]];
        assert_eq!(first(&left, &TERMS), None);
    }

    #[test]
    fn one_that_was_cut_short_is_copied_alone_only_for_a_place() {
        let candidates = [candidate(1, 1000, 0, 0), candidate(2, 900, 0, 0), candidate(3, 800, 0, 0)];
        assert_eq!(first(&candidates, &TERMS), None);
        assert_eq!(first(&candidates, &Terms { place: 200, ..TERMS }), Some(candidates[2]));
        assert_eq!(first(&candidates, &Terms { place: 201, ..TERMS }), None);
        // Not if another segment yields something.
        let garbage = [candidate(1, 1000, 1, 0), candidates[2]];
        assert_eq!(first(&garbage, &Terms { place: 1, ..TERMS }), Some(garbage[0]));
    }

    #[test]
    fn what_has_expired_counts_as_garbage() {
        let expired = Candidate { expired: 700, ..candidate(2, 1000, 0, 0) };
        let candidates = [candidate(1, 1000, 500, 0), expired, candidate(3, 1000, 0, 0)];
        assert_eq!(first(&candidates, &TERMS), Some(expired));
    }

    #[test]
    fn many_tombstones_send_the_oldest_segment_first() {
        let candidates = [candidate(5, 1000, 900, 0), candidate(3, 1000, 0, 0), candidate(9, 1000, 0, 700)];
        assert_eq!(first(&candidates, &TERMS).map(|chosen| chosen.life), Some(3));
        // But not if they must stay because of a segment that cannot be cleaned.
        let chosen = first(&candidates, &Terms { oldest_other: 8, ..TERMS });
        assert_eq!(chosen.map(|chosen| chosen.life), Some(5));
    }

    /// It holds back all tombstones, but its own tombstones are as young as it is.
    #[test]
    fn a_young_segment_with_copies_of_older_records_counts_as_old_for_what_it_holds() {
        let young = Candidate { oldest: 2, ..candidate(9, 1000, 0, 0) };
        let candidates = [candidate(3, 1000, 900, 700), young];
        assert_eq!(first(&candidates, &TERMS), Some(young));
        let young = Candidate { oldest: 2, ..candidate(9, 1000, 0, 700) };
        let candidates = [candidate(3, 1000, 900, 0), young];
        let chosen = first(&candidates, &Terms { oldest_other: 8, ..TERMS });
        assert_eq!(chosen, Some(candidates[0]), "they have to stay");
    }
}
