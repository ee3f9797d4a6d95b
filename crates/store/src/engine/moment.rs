//! [`Moment`]: the state of a store that a read sees.

/// A state of a store: the number up to which its writes count, and the time by which values have expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) number: u64,
    /// In milliseconds since 1970; 0 for the time of each look.
    pub(crate) time: u64,
}

impl Moment {
    /// The newest state, at the time of each look.
    pub(crate) const NOW: Moment = Moment { number: u64::MAX, time: 0 };

    /// Whether it is the newest state.
    #[inline(always)]
    pub(crate) fn is_now(self) -> bool {
        self.number == u64::MAX
    }
}
