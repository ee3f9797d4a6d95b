//! The judge against histories whose verdict is known: each anomaly is convicted where it is forbidden, and
//! what is allowed is not.

use super::check::{Anomaly, Verdict, check};
use super::history::{End, Event, History, Key, Level, Look, Transaction, Version};

const X: Key = 1;
const Y: Key = 2;

/// A step of a schedule. Values are told by the transaction and the number of its write.
#[derive(Clone, Copy)]
enum Do<'d> {
    Begin,
    Get(Key, Option<(usize, usize)>),
    ForUpdate(Key, Option<(usize, usize)>),
    Range(&'d [(Key, Option<(usize, usize)>)]),
    Put(Key),
    Delete(Key),
    Back(usize),
    Commit(u64),
    CommitAs(&'d [(Key, u64)]),
    Conflict,
    GiveUp,
}

use Do::*;

/// The history of a schedule: steps of transactions, none of which overlap in time.
fn history(level: Level, schedule: &[(usize, Do)]) -> History {
    let count = schedule.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    let new = |task| Transaction {
        task,
        is_plain: false,
        begun: (0, 0),
        events: Vec::new(),
        ended: (u64::MAX - 1, u64::MAX),
        end: End::GivenUp,
    };
    let mut transactions: Vec<_> = (0..count as u32).map(new).collect();
    for (at, (number, step)) in schedule.iter().enumerate() {
        let (at, own) = ((2 * at as u64 + 1, 2 * at as u64 + 2), &mut transactions[*number]);
        let write = own.events.iter().filter(|event| matches!(event, Event::Write { .. })).count();
        let read = |look| {
            move |(key, saw): (Key, Option<(usize, usize)>)| {
                let saw = saw.map(|(writer, write)| Version { writer, write });
                Event::Read { key, saw, look, at }
            }
        };
        match *step {
            Begin => own.begun = at,
            Get(key, saw) => own.events.push(read(Look::Get)((key, saw))),
            ForUpdate(key, saw) => own.events.push(read(Look::ForUpdate)((key, saw))),
            Range(reads) => own.events.extend(reads.iter().copied().map(read(Look::Range))),
            Put(key) => own.events.push(Event::Write { key, write: Some(write) }),
            Delete(key) => own.events.push(Event::Write { key, write: None }),
            Back(to) => own.events.push(Event::RolledBack { to }),
            Commit(number) => {
                let numbers = own.last_writes().into_keys().map(|key| (key, number));
                (own.ended, own.end) = (at, End::Committed(numbers.collect()));
            }
            CommitAs(numbers) => {
                (own.ended, own.end) = (at, End::Committed(numbers.iter().copied().collect()))
            }
            Conflict => (own.ended, own.end) = (at, End::Conflict),
            GiveUp => (own.ended, own.end) = (at, End::GivenUp),
        }
    }
    History { level, transactions }
}

fn verdict(level: Level, schedule: &[(usize, Do)]) -> Verdict {
    check(&history(level, schedule))
}

/// The faults of a schedule at each level, from the weakest on.
fn anomalies(schedule: &[(usize, Do)]) -> [Vec<Anomaly>; 3] {
    Level::ALL.map(|level| {
        let verdict = verdict(level, schedule);
        let mut found: Vec<_> = verdict.violations.into_iter().map(|violation| violation.anomaly).collect();
        found.sort();
        found.dedup();
        found
    })
}

#[track_caller]
fn fine(schedule: &[(usize, Do)]) {
    assert_eq!(anomalies(schedule), [(); 3].map(|()| Vec::new()));
}

#[track_caller]
fn convicted(schedule: &[(usize, Do)], expected: [Option<Anomaly>; 3]) {
    let found = anomalies(schedule);
    for (found, expected) in found.iter().zip(expected) {
        let is_so = expected.map_or(found.is_empty(), |anomaly| found.contains(&anomaly));
        assert!(is_so, "{found:?}, expected {expected:?}");
    }
}

/// Forbidden at all levels.
#[track_caller]
fn always(schedule: &[(usize, Do)], anomaly: Anomaly) {
    convicted(schedule, [Some(anomaly); 3]);
}

#[test]
fn transactions_one_after_the_other_are_fine() {
    fine(&[]);
    fine(&[
        (0, Begin),
        (0, Get(X, None)),
        (0, Put(X)),
        (0, Get(X, Some((0, 0)))),
        (0, Put(Y)),
        (0, Commit(1)),
        (1, Begin),
        (1, Range(&[(X, Some((0, 0))), (Y, Some((0, 1)))])),
        (1, Delete(X)),
        (1, Get(X, None)),
        (1, Commit(3)),
        (2, Begin),
        (2, Get(X, None)),
        (2, Get(Y, Some((0, 1)))),
        (2, Commit(0)),
    ]);
    // Each may come first: neither sees the other.
    fine(&[(0, Begin), (1, Begin), (0, Get(X, None)), (1, Put(X)), (1, Commit(1)), (0, Commit(0))]);
}

#[test]
fn savepoints_take_writes_back() {
    fine(&[
        (0, Begin),
        (0, Put(X)),
        (0, Put(X)),
        (0, Put(Y)),
        (0, Back(1)),
        (0, Get(X, Some((0, 0)))),
        (0, Get(Y, None)),
        (0, Commit(1)),
        (1, Begin),
        (1, Get(X, Some((0, 0)))),
        (1, Get(Y, None)),
        (1, Commit(0)),
    ]);
    let back = [(0, Begin), (0, Put(X)), (0, Put(X)), (0, Back(1))];
    always(&[&back[..], &[(0, Get(X, Some((0, 1))))]].concat(), Anomaly::OwnWrite);
    let seen = [(0, Commit(1)), (1, Begin), (1, Get(X, Some((0, 1))))];
    always(&[&back[..], &seen].concat(), Anomaly::Intermediate);
}

#[test]
fn own_writes_are_seen() {
    always(&[(0, Begin), (0, Put(X)), (0, Get(X, None))], Anomaly::OwnWrite);
    always(&[(0, Begin), (0, Put(X)), (0, Delete(X)), (0, Range(&[(X, Some((0, 0)))]))], Anomaly::OwnWrite);
    always(&[(0, Begin), (0, Get(X, Some((0, 0)))), (0, Put(X))], Anomaly::OwnWrite);
}

#[test]
fn values_that_nobody_wrote_are_foreign() {
    always(&[(0, Begin), (0, Get(X, Some((usize::MAX, 0))))], Anomaly::Foreign);
    // Of another key.
    always(
        &[(0, Begin), (0, Put(Y)), (0, Commit(1)), (1, Begin), (1, Get(X, Some((0, 0))))],
        Anomaly::Foreign,
    );
}

#[test]
fn g0_cycles_of_writes() {
    let both = [(0, Begin), (1, Begin), (0, Put(X)), (1, Put(X)), (0, Put(Y)), (1, Put(Y))];
    let ends = [(0, CommitAs(&[(X, 1), (Y, 4)])), (1, CommitAs(&[(X, 2), (Y, 3)]))];
    always(&[&both[..], &ends].concat(), Anomaly::DirtyWrite);
    convicted(
        &[&both[..], &[(0, Commit(1)), (1, Commit(2))]].concat(),
        [None, Some(Anomaly::LostUpdate), Some(Anomaly::LostUpdate)],
    );
}

#[test]
fn g1a_aborted_reads() {
    for end in [GiveUp, Conflict] {
        let schedule =
            [(0, Begin), (0, Put(X)), (1, Begin), (1, Get(X, Some((0, 0)))), (0, end), (1, Commit(0))];
        always(&schedule, Anomaly::Aborted);
    }
}

#[test]
fn g1b_intermediate_reads() {
    let before = [(0, Begin), (0, Put(X)), (0, Put(X)), (0, Commit(1)), (1, Begin)];
    always(&[&before[..], &[(1, Get(X, Some((0, 0))))]].concat(), Anomaly::Intermediate);
    fine(&[&before[..], &[(1, Get(X, Some((0, 1))))]].concat());
}

#[test]
fn g1c_circular_flow() {
    let schedule = [
        (0, Begin),
        (1, Begin),
        (0, Put(X)),
        (1, Put(Y)),
        (0, Get(Y, Some((1, 0)))),
        (1, Get(X, Some((0, 0)))),
        (0, Commit(1)),
        (1, Commit(2)),
    ];
    always(&schedule, Anomaly::Circular);
}

#[test]
fn states_are_of_their_time() {
    let stale = [(0, Begin), (0, Put(X)), (0, Commit(1)), (1, Begin), (1, Get(X, None)), (1, Commit(0))];
    always(&stale, Anomaly::OutOfTime);
    // Numbers against time.
    let numbers = [(0, Begin), (0, Put(X)), (0, Commit(2)), (1, Begin), (1, Put(Y)), (1, Commit(1))];
    always(&numbers, Anomaly::OutOfTime);
    // Committed behind the beginning: read committed shows it, and the others must not.
    let late =
        [(0, Begin), (1, Begin), (1, Put(X)), (1, Commit(1)), (0, Get(X, Some((1, 0)))), (0, Commit(0))];
    convicted(&late, [None, Some(Anomaly::OutOfTime), Some(Anomaly::OutOfTime)]);
    let late = [(0, Begin), (1, Begin), (1, Put(X)), (1, Commit(1)), (0, Get(X, None)), (0, Commit(0))];
    convicted(&late, [Some(Anomaly::OutOfTime), None, None]);
}

/// Also of absent keys and in ranges.
#[test]
fn g_single_read_skew() {
    let schedule = |first: Do<'static>, second: Do<'static>| {
        [
            (0, Begin),
            (0, Put(X)),
            (0, Put(Y)),
            (0, Commit(1)),
            (1, Begin),
            (1, first),
            (2, Begin),
            (2, Put(X)),
            (2, Delete(Y)),
            (2, Commit(3)),
            (1, second),
            (1, Commit(0)),
        ]
    };
    let skew = |first, second| {
        convicted(&schedule(first, second), [None, Some(Anomaly::ReadSkew), Some(Anomaly::ReadSkew)])
    };
    skew(Get(X, Some((0, 0))), Get(Y, None));
    skew(Get(Y, Some((0, 1))), Get(X, Some((2, 0))));
    skew(Get(X, Some((0, 0))), Range(&[(Y, None)]));
    let sound = schedule(Get(X, Some((0, 0))), Get(Y, Some((0, 1))));
    convicted(&sound, [Some(Anomaly::OutOfTime), None, None]);
}

#[test]
fn p4_lost_updates() {
    let lost = [
        (0, Begin),
        (0, Put(X)),
        (0, Commit(1)),
        (1, Begin),
        (2, Begin),
        (1, Get(X, Some((0, 0)))),
        (2, Get(X, Some((0, 0)))),
        (1, Put(X)),
        (2, Put(X)),
        (1, Commit(2)),
        (2, Commit(3)),
    ];
    convicted(&lost, [None, Some(Anomaly::LostUpdate), Some(Anomaly::LostUpdate)]);
    assert_eq!(verdict(Level::ReadCommitted, &lost).lost_updates, 1);
    // A put and a deletion of an absent key count, and blind writes.
    let blind = [
        (0, Begin),
        (1, Begin),
        (1, Put(X)),
        (1, Commit(1)),
        (2, Begin),
        (2, Delete(X)),
        (2, Commit(2)),
        (0, Put(X)),
        (0, Commit(3)),
    ];
    convicted(&blind, [None, Some(Anomaly::LostUpdate), Some(Anomaly::LostUpdate)]);
}

#[test]
fn keys_that_were_read_for_update_stay() {
    let schedule = |end| {
        [(0, Begin), (0, ForUpdate(X, None)), (1, Begin), (1, Put(X)), (1, Commit(1)), (0, Put(Y)), (0, end)]
    };
    always(&schedule(Commit(2)), Anomaly::LostUpdate);
    fine(&schedule(Conflict));
    fine(&schedule(GiveUp));
}

/// By keys, by absent keys of ranges, and with three.
#[test]
fn g2_write_skew() {
    let skew = [None, None, Some(Anomaly::Skew)];
    let items = [
        (0, Begin),
        (1, Begin),
        (0, Get(X, None)),
        (0, Get(Y, None)),
        (1, Get(X, None)),
        (1, Get(Y, None)),
        (0, Put(X)),
        (1, Put(Y)),
        (0, Commit(1)),
        (1, Commit(2)),
    ];
    convicted(&items, skew);
    let verdict = verdict(Level::Snapshot, &items);
    assert!(verdict.has_skew && verdict.violations.is_empty());
    const ABSENT: &[(Key, Option<(usize, usize)>)] = &[(X, None), (Y, None)];
    let ranges = [
        (0, Begin),
        (1, Begin),
        (0, Range(ABSENT)),
        (1, Range(ABSENT)),
        (0, Put(X)),
        (1, Put(Y)),
        (0, Commit(1)),
        (1, Commit(2)),
    ];
    convicted(&ranges, skew);
    // A reader sees the one of two that comes later in any order of the writers.
    let reader = [
        (0, Begin),
        (0, Get(X, None)),
        (0, Get(Y, None)),
        (1, Begin),
        (1, Put(X)),
        (1, Commit(1)),
        (2, Begin),
        (2, Get(X, Some((1, 0)))),
        (2, Get(Y, None)),
        (2, Commit(0)),
        (0, Put(Y)),
        (0, Commit(2)),
    ];
    convicted(&reader, skew);
}

#[test]
fn a_conflict_has_a_reason() {
    let alone = [(0, Begin), (0, Get(X, None)), (0, Put(X)), (0, Conflict)];
    always(&alone, Anomaly::Needless);
    let elsewhere = [(0, Begin), (1, Begin), (1, Put(Y)), (1, Commit(1)), (0, Put(X)), (0, Conflict)];
    always(&elsewhere, Anomaly::Needless);
    // Before the beginning.
    let before = [(1, Begin), (1, Put(X)), (1, Commit(1)), (0, Begin), (0, Put(X)), (0, Conflict)];
    always(&before, Anomaly::Needless);
    let needless = Some(Anomaly::Needless);
    let written = [(0, Begin), (1, Begin), (1, Put(X)), (1, Commit(1)), (0, Put(X)), (0, Conflict)];
    convicted(&written, [needless, None, None]);
    let read =
        [(0, Begin), (0, Get(X, None)), (1, Begin), (1, Put(X)), (1, Commit(1)), (0, Put(Y)), (0, Conflict)];
    convicted(&read, [needless, needless, None]);
}

/// A key that was absent before and behind a value: the reader may have seen either absence.
#[test]
fn ambiguous_absence_convicts_nobody() {
    fine(&[
        (0, Begin),
        (0, Put(X)),
        (0, Commit(1)),
        (1, Begin),
        (1, Delete(X)),
        (1, Commit(2)),
        (2, Begin),
        (2, Get(X, None)),
        (2, Get(Y, None)),
        (2, Commit(0)),
    ]);
    // The beginning lasts while others come and go.
    let mut during = history(
        Level::Serializable,
        &[
            (0, Begin),
            (0, Put(X)),
            (0, Commit(1)),
            (1, Begin),
            (1, Delete(X)),
            (1, Put(Y)),
            (1, Commit(2)),
            (2, Begin),
            (2, Get(X, None)),
            (2, Commit(0)),
        ],
    );
    during.transactions[2].begun.0 = 0;
    assert!(check(&during).violations.is_empty());
    let Event::Read { saw, .. } = &mut during.transactions[2].events[0] else { unreachable!() };
    *saw = Some(Version { writer: 0, write: 0 });
    assert!(check(&during).violations.is_empty());
}

#[test]
fn single_calls_read_what_they_replace() {
    let mut update = history(
        Level::Snapshot,
        &[(0, Begin), (0, Put(X)), (0, Commit(1)), (1, ForUpdate(X, None)), (1, Put(X)), (1, Commit(2))],
    );
    (update.transactions[1].is_plain, update.transactions[1].begun) = (true, update.transactions[1].ended);
    let found = check(&update).violations;
    assert!(found.iter().any(|violation| violation.anomaly == Anomaly::LostUpdate), "{found:?}");
    let Event::Read { saw, .. } = &mut update.transactions[1].events[0] else { unreachable!() };
    *saw = Some(Version { writer: 0, write: 0 });
    assert!(check(&update).violations.is_empty());
}
