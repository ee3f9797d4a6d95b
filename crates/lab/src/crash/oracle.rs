//! The states that a crash may leave, decided key by key while the workload runs.
//!
//! The condition is durable linearizability: the value that a key has after recovery must end some order of
//! all acknowledged operations and any of those in flight. That order respects real time and explains every
//! result that was returned before the crash. Keys are independent, since no operation spans two of them
//! atomically. So each has an oracle of its own, which keeps the set of *worlds* still possible: a state, and
//! which operations in flight have taken effect in it. The set stays tiny, since only operations in flight
//! can be reordered.

pub use crate::linear::Outcome;
use quipu_medium::sim::START_OF_TIME;
use std::collections::BTreeSet;

/// Names a value. The lower half names its write, the upper half the last change to it in place, 0 if there
/// was none. Each write and each change has a name of its own, out of the same numbers.
pub type ValueId = u64;

/// Names a change to a value in place.
pub type ChangeId = u32;

/// The value that a change in place makes of another: the write that both come from stays.
pub fn changed(value: ValueId, change: ChangeId) -> ValueId {
    value & ValueId::from(ChangeId::MAX) | ValueId::from(change) << ChangeId::BITS
}

/// Where the name of a write says when its value expires, in a field of this many bits.
const EXPIRY_SHIFT: u32 = 27;
const EXPIRY_BITS: u32 = 4;
const EXPIRY_FIELD: ValueId = ((1 << EXPIRY_BITS) - 1) << EXPIRY_SHIFT;

/// Time in steps of the simulated clock, from 0 at its start.
pub type Time = u64;

/// The last time at which a value may expire.
pub const LAST_EXPIRY: Time = (1 << EXPIRY_BITS) - 1;

/// Milliseconds of a step.
const STEP_MS: u64 = 1000;

/// The milliseconds of the clock at this time.
pub fn milliseconds(time: Time) -> u64 {
    START_OF_TIME + time * STEP_MS
}

/// The name of a write whose value expires at this time, 1 or later.
pub fn expiring(value: ValueId, time: Time) -> ValueId {
    lasting(value) | time.clamp(1, LAST_EXPIRY) << EXPIRY_SHIFT
}

/// The name of a write whose value stays.
pub fn lasting(value: ValueId) -> ValueId {
    value & !EXPIRY_FIELD
}

/// When a value expires, if ever.
pub fn expiry(value: ValueId) -> Option<Time> {
    let time = (value & EXPIRY_FIELD) >> EXPIRY_SHIFT;
    (time != 0).then_some(time)
}

/// State of a key: absent, or a value. A value that has expired is a state of its own, which [shows](shown)
/// as absent.
pub type State = Option<ValueId>;

/// The state that a read finds at this time.
pub fn shown(state: State, now: Time) -> State {
    state.filter(|value| expiry(*value).is_none_or(|time| time > now))
}

/// Names an operation within one oracle.
pub type OpId = u32;

/// The effect of an operation on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Reads.
    Get,
    /// Writes this value.
    Put(ValueId),
    /// Deletes, without a look.
    Delete,
    /// Writes this value with a time of expiry that has passed.
    Expire(ValueId),
    /// Deletes, and tells whether there was a value.
    Remove,
    /// Reads and writes this value, with nothing in between.
    Update(ValueId),
    /// Writes this value if the key is absent.
    PutIfAbsent(ValueId),
    /// Replaces one state by another if it is the present one.
    Swap(State, State),
    /// Changes the value in place, if there is one, and tells what it was.
    Change(ChangeId),
}

impl Action {
    /// The state that it writes, if it writes at all.
    pub(super) fn written(self) -> Option<State> {
        match self {
            Action::Get | Action::Change(_) => None,
            Action::Put(value) | Action::Update(value) | Action::PutIfAbsent(value) => Some(Some(value)),
            Action::Delete | Action::Expire(_) | Action::Remove => Some(None),
            Action::Swap(_, new) => Some(new),
        }
    }

    /// The state that the action leaves at this time, and its answer.
    pub(super) fn apply(self, state: State, now: Time) -> (State, Outcome) {
        let seen = shown(state, now);
        match self {
            Action::Get => (state, Outcome::Saw(seen)),
            Action::Put(value) => (Some(value), Outcome::Done),
            Action::Delete | Action::Expire(_) => (None, Outcome::Done),
            Action::Remove => (None, Outcome::Did(seen.is_some())),
            Action::Update(value) => (Some(value), Outcome::Saw(seen)),
            Action::PutIfAbsent(value) => (seen.or(Some(value)), Outcome::Did(seen.is_none())),
            Action::Swap(expected, new) if seen == expected => (new, Outcome::Did(true)),
            Action::Swap(..) => (state, Outcome::Did(false)),
            Action::Change(change) => (seen.map(|value| changed(value, change)), Outcome::Saw(seen)),
        }
    }
}

/// One way in which things may have happened so far.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    state: State,
    /// Operations in flight that have taken effect, with what they will return.
    effected: Vec<(OpId, Outcome)>,
}

/// The oracle of one key.
#[derive(Clone, Debug)]
pub struct KeyOracle {
    worlds: BTreeSet<World>,
    in_flight: Vec<InFlight>,
    now: Time,
}

/// An operation that has begun. It may look at the clock at any time since then.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    op: OpId,
    action: Action,
    since: Time,
}

impl KeyOracle {
    /// The oracle of a key in this state, at this time.
    pub fn new(state: State, now: Time) -> KeyOracle {
        let worlds = BTreeSet::from([World { state, effected: Vec::new() }]);
        KeyOracle { worlds, in_flight: Vec::new(), now }
    }

    /// The clock shows a later time.
    pub fn advance(&mut self, now: Time) {
        self.now = now;
    }

    /// An operation begins.
    pub fn invoke(&mut self, op: OpId, action: Action) {
        self.in_flight.push(InFlight { op, action, since: self.now });
    }

    /// An operation returns. `false` if no order of the operations explains what it returned.
    #[must_use]
    pub fn respond(&mut self, op: OpId, outcome: Outcome) -> bool {
        let mut worlds = self.reachable();
        worlds.retain(|world| world.effected.contains(&(op, outcome)));
        self.worlds = worlds
            .into_iter()
            .map(|mut world| {
                world.effected.retain(|(other, _)| *other != op);
                world
            })
            .collect();
        self.in_flight.retain(|other| other.op != op);
        !self.worlds.is_empty()
    }

    /// An operation returned an error that promises no effect, or was never started.
    pub fn withdraw(&mut self, op: OpId) {
        self.worlds.retain(|world| world.effected.iter().all(|(other, _)| *other != op));
        self.in_flight.retain(|other| other.op != op);
    }

    /// Every state that a crash at this moment may leave.
    pub fn allowed(&self) -> BTreeSet<State> {
        self.reachable().into_iter().map(|world| world.state).collect()
    }

    /// The states that a crash may leave in which this operation in flight has taken effect, or in which it
    /// has not.
    pub fn allowed_if(&self, op: OpId, effected: bool) -> BTreeSet<State> {
        let worlds = self.reachable().into_iter();
        let agrees = |world: &World| world.effected.iter().any(|(other, _)| *other == op) == effected;
        worlds.filter(agrees).map(|world| world.state).collect()
    }

    /// Whether some operation in flight has certainly taken effect: a read has shown it.
    pub fn has_effects_in_flight(&self) -> bool {
        self.worlds.iter().all(|world| !world.effected.is_empty())
    }

    /// All worlds that come from letting any operations in flight take effect, in any order.
    fn reachable(&self) -> BTreeSet<World> {
        let mut all = self.worlds.clone();
        let mut fresh: Vec<World> = all.iter().cloned().collect();
        while let Some(world) = fresh.pop() {
            for InFlight { op, action, since } in &self.in_flight {
                if world.effected.iter().any(|(other, _)| other == op) {
                    continue;
                }
                for time in *since..=self.now {
                    let (state, outcome) = action.apply(world.state, time);
                    let mut next = World { state, effected: world.effected.clone() };
                    next.effected.push((*op, outcome));
                    next.effected.sort_unstable();
                    if all.insert(next.clone()) {
                        fresh.push(next);
                    }
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledged_write_must_stay_and_one_in_flight_may() {
        let mut oracle = KeyOracle::new(None, 0);
        oracle.invoke(1, Action::Put(10));
        assert_eq!(oracle.allowed(), BTreeSet::from([None, Some(10)]));
        assert!(oracle.respond(1, Outcome::Done));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(10)]));
        oracle.invoke(2, Action::Delete);
        assert_eq!(oracle.allowed(), BTreeSet::from([None, Some(10)]));
    }

    #[test]
    fn a_read_of_a_write_in_flight_pins_it() {
        let mut oracle = KeyOracle::new(Some(1), 0);
        oracle.invoke(1, Action::Put(2));
        oracle.invoke(2, Action::Get);
        assert!(oracle.respond(2, Outcome::Saw(Some(2))));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(2)]));
    }

    #[test]
    fn a_read_may_not_go_back_in_time() {
        let mut oracle = KeyOracle::new(Some(1), 0);
        oracle.invoke(1, Action::Put(2));
        oracle.invoke(2, Action::Get);
        assert!(oracle.respond(2, Outcome::Saw(Some(2))));
        oracle.invoke(3, Action::Get);
        assert!(!oracle.respond(3, Outcome::Saw(Some(1))));
    }

    #[test]
    fn concurrent_writes_may_end_either_way_but_results_decide() {
        let mut oracle = KeyOracle::new(None, 0);
        oracle.invoke(1, Action::PutIfAbsent(1));
        oracle.invoke(2, Action::PutIfAbsent(2));
        assert!(oracle.respond(1, Outcome::Did(false)));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(2)]));
        assert!(oracle.respond(2, Outcome::Did(true)));
        oracle.invoke(3, Action::Swap(Some(2), None));
        oracle.invoke(4, Action::Update(4));
        assert!(oracle.respond(4, Outcome::Saw(None)));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(4)]));
        assert!(!oracle.clone().respond(3, Outcome::Did(false)));
        assert!(oracle.respond(3, Outcome::Did(true)));
    }

    #[test]
    fn a_change_in_place_keeps_the_write_beneath_it() {
        let mut oracle = KeyOracle::new(Some(7), 0);
        oracle.invoke(1, Action::Change(9));
        oracle.invoke(2, Action::Put(8));
        let [old, new] = [7, 8].map(|value| changed(value, 9));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(7), Some(8), Some(old), Some(new)]));
        assert!(oracle.respond(2, Outcome::Done));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(8), Some(new)]));
        assert!(!oracle.clone().respond(1, Outcome::Saw(Some(new))));
        assert!(oracle.respond(1, Outcome::Saw(Some(8))));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(new)]));
        assert_eq!(changed(new, 10), changed(8, 10));
    }

    #[test]
    fn a_value_expires_for_operations_that_begin_later_and_may_for_those_in_flight() {
        let brief = expiring(5, 2);
        let mut oracle = KeyOracle::new(Some(brief), 1);
        oracle.invoke(1, Action::PutIfAbsent(6));
        oracle.advance(2);
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(brief), Some(6)]));
        assert!(oracle.clone().respond(1, Outcome::Did(true)));
        assert!(oracle.respond(1, Outcome::Did(false)));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(brief)]));
        oracle.invoke(2, Action::Get);
        assert!(!oracle.clone().respond(2, Outcome::Saw(Some(brief))));
        assert!(oracle.respond(2, Outcome::Saw(None)));
        assert_eq!((shown(Some(brief), 1), shown(Some(brief), 2)), (Some(brief), None));
        assert_eq!((expiry(brief), expiry(lasting(brief))), (Some(2), None));
    }
}
