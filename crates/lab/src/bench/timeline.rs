//! The operations of a thread, each timed, by the second in which they ended.

use quipu_bench::drive::{Access, Latencies};
use quipu_bench::stalls::Stall;
use std::time::Instant;

/// The operations of one thread.
pub(super) struct Timeline {
    /// When the first one began.
    begin: Option<Instant>,
    by_second: Vec<u64>,
    latencies: Latencies,
    stalls: Vec<Stall>,
}

impl Timeline {
    /// For so many seconds. All of its memory is taken here, except that of stalls.
    pub(super) fn new(seconds: u64) -> Timeline {
        let by_second = vec![0; seconds as usize];
        Timeline { begin: None, by_second, latencies: Latencies::none(), stalls: Vec::new() }
    }

    /// Notes an operation. One that ended after the last second has no second.
    #[inline]
    pub(super) fn note(&mut self, access: Access, begin: Instant, end: Instant) {
        let second = (end - *self.begin.get_or_insert(begin)).as_secs();
        if let Some(operations) = self.by_second.get_mut(second as usize) {
            *operations += 1;
        }
        self.latencies.record(access, (end - begin).as_nanos() as u64);
        self.stalls.extend(Stall::of(begin, end));
    }

    /// The operations of several threads that began together.
    pub(super) fn together(mut self, other: Timeline) -> Timeline {
        self.by_second.iter_mut().zip(&other.by_second).for_each(|(sum, other)| *sum += other);
        self.latencies.add(&other.latencies);
        self.stalls.extend(other.stalls);
        self
    }

    /// Operations by the second, their latencies, and those that stalled.
    pub(super) fn parts(self) -> (Vec<u64>, Latencies, Vec<Stall>) {
        (self.by_second, self.latencies, self.stalls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn operations_count_in_the_second_in_which_they_end() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let of = |ends: &[(u64, u64)]| {
            let mut timeline = Timeline::new(3);
            ends.iter().for_each(|(from, to)| timeline.note(Access::Put, at(*from), at(*to)));
            timeline
        };
        let one = of(&[(0, 1), (900, 999), (999, 1_000), (1_000, 2_500), (2_990, 3_010)]);
        let (by_second, _, stalls) = one.together(of(&[(0, 1), (1, 2)])).parts();
        assert_eq!(by_second, [4, 1, 1], "and none in a fourth");
        assert_eq!(stalls, [Stall::of(at(1_000), at(2_500)).expect("it is long")]);
    }
}
