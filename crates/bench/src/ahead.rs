//! Keys and values made ahead of the calls that take them, or in the loop.
//!
//! While a processor waits for the memory of one call, it begins as much of the next as fits its window: on
//! the machines of this project some 200 instructions that write a register. Keys and values made between two
//! calls fill that window. The measurement then shows how well the benchmark's own work overlaps with the
//! store's, and a user who has the next key at hand is served faster. So they are made a block at a time,
//! inside of a phase's time but not of a call's.
//!
//! Many programs do make their keys between two calls. Reads and updates are measured so too, beside the
//! others.

use super::drive::{Answer, Caller};
use super::error::BenchError;
use std::ops::Range;

/// A call to come.
#[derive(Clone, Default)]
pub(super) struct Request {
    /// Number of its record.
    pub(super) record: u64,
    /// Its key and, if it writes, its value.
    pub(super) pair: (Vec<u8>, Vec<u8>),
}

/// Calls whose requests are still to be made, at one time or the other.
pub(super) trait Calls {
    /// Requests are made a block of calls ahead.
    fn ahead(self) -> impl Caller;

    /// Each request is made right before its call, inside of its time.
    fn in_loop(self) -> impl Caller;
}

/// `fill` makes the request of the call of a number, over an older one; `call` takes it.
pub(super) fn calls<F, C, A>(fill: F, call: C) -> impl Calls
where
    F: FnMut(u64, &mut Request),
    C: FnMut(u64, &mut Request) -> Result<A, BenchError>,
    A: Into<Answer>,
{
    Made { fill, call }
}

struct Made<F, C> {
    fill: F,
    call: C,
}

impl<F, C, A> Calls for Made<F, C>
where
    F: FnMut(u64, &mut Request),
    C: FnMut(u64, &mut Request) -> Result<A, BenchError>,
    A: Into<Answer>,
{
    fn ahead(self) -> impl Caller {
        Ahead { made: self, requests: Vec::new(), first: 0, end: 0 }
    }

    fn in_loop(mut self) -> impl Caller {
        let mut request = Request::default();
        move |number| {
            (self.fill)(number, &mut request);
            (self.call)(number, &mut request)
        }
    }
}

/// Calls whose requests are made ahead.
struct Ahead<F, C> {
    made: Made<F, C>,
    requests: Vec<Request>,
    /// The call that the first of these is for, and the one behind the last that has one.
    first: u64,
    end: u64,
}

impl<F, C, A> Caller for Ahead<F, C>
where
    F: FnMut(u64, &mut Request),
    C: FnMut(u64, &mut Request) -> Result<A, BenchError>,
    A: Into<Answer>,
{
    fn prepare(&mut self, calls: Range<u64>) {
        let count = (calls.end - calls.start) as usize;
        if self.requests.len() < count {
            self.requests.resize(count, Request::default());
        }
        (self.first, self.end) = (calls.start, calls.end);
        for (number, request) in calls.zip(&mut self.requests) {
            (self.made.fill)(number, request);
        }
    }

    #[inline(always)]
    fn call(&mut self, number: u64) -> Result<Answer, BenchError> {
        debug_assert!((self.first..self.end).contains(&number), "call {number} has no request");
        let request = &mut self.requests[(number - self.first) as usize];
        (self.made.call)(number, request).map(A::into)
    }
}
