//! The states that a crash may leave, decided key by key while the workload runs.
//!
//! The condition is durable linearizability: the value that a key has after recovery must end some order of
//! all acknowledged operations and any of those in flight. That order respects real time and explains every
//! result that was returned before the crash. Keys are independent, since no operation spans two of them
//! atomically. So each has an oracle of its own, which keeps the set of *worlds* still possible: a state, and
//! which operations in flight have taken effect in it. The set stays tiny, since only operations in flight
//! can be reordered.

pub use crate::action::{
    Action, ChangeId, LAST_EXPIRY, Outcome, State, Time, Value as ValueId, changed, expiring, expiry,
    lasting, milliseconds, shown,
};
use std::collections::BTreeSet;

/// Names an operation within one oracle.
pub type OpId = u32;

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

    /// An operation returned an error, and has taken effect by now, or never will.
    pub fn break_off(&mut self, op: OpId) {
        let mut worlds: Vec<_> = self.reachable().into_iter().collect();
        worlds.iter_mut().for_each(|world| world.effected.retain(|(other, _)| *other != op));
        self.worlds = worlds.into_iter().collect();
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
    fn a_write_that_was_broken_off_is_there_or_will_never_be() {
        let mut oracle = KeyOracle::new(Some(1), 0);
        oracle.invoke(1, Action::Put(2));
        oracle.break_off(1);
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(1), Some(2)]));
        oracle.invoke(2, Action::Get);
        assert!(oracle.respond(2, Outcome::Saw(Some(1))));
        assert_eq!(oracle.allowed(), BTreeSet::from([Some(1)]), "it does not come later");
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
        oracle.invoke(4, Action::Update(Some(4)));
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
