//! The fixed crash images of a snapshot, named before they are formed.
//!
//! Most bugs need one word, one line or one moment to be missing; these families hold all of those. They
//! follow the engines of the PMDK's pmreorder tool (accumulative, reverse accumulative, each alone, all but
//! each).

use super::line::WORDS;
use super::snapshot::Snapshot;

/// How to form one image. Events and lines by their place in the snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    Nothing,
    Everything,
    /// One word.
    Only(usize),
    /// All but one value of a word; an older value may stand there.
    Without(usize),
    /// All but one word of a line, in all its values.
    WithoutWord(usize, u8),
    OnlyLine(usize),
    WithoutLine(usize),
    /// The first so many events.
    First(usize),
    /// The last so many events.
    Last(usize),
}

/// The fixed plans of a snapshot, with their tables.
pub(super) struct Plans {
    pub(super) list: Vec<Plan>,
    /// The line of each event.
    line_of: Vec<usize>,
    /// Events by their place in the one order over all lines.
    in_order: Vec<usize>,
}

impl Plans {
    pub(super) fn new(snapshot: &Snapshot) -> Plans {
        let events = snapshot.events.len();
        let mut line_of = vec![0; events];
        for (line, (_, range)) in snapshot.lines.iter().enumerate() {
            line_of[range.clone()].fill(line);
        }
        let mut in_order: Vec<_> = (0..events).collect();
        in_order.sort_unstable_by_key(|event| snapshot.events[*event].order);
        let lines = 0..snapshot.lines.len();
        let mut list = vec![Plan::Nothing, Plan::Everything];
        list.extend((0..events).map(Plan::Only));
        list.extend((0..events).map(Plan::Without));
        for (line, (_, range)) in snapshot.lines.iter().enumerate() {
            for word in 0..WORDS as u8 {
                // A word with one value is left out by `Without`.
                if snapshot.events[range.clone()].iter().filter(|event| event.word == word).count() > 1 {
                    list.push(Plan::WithoutWord(line, word));
                }
            }
        }
        list.extend(lines.clone().map(Plan::OnlyLine));
        list.extend(lines.map(Plan::WithoutLine));
        list.extend((1..events).map(Plan::First));
        list.extend((1..events).map(Plan::Last));
        Plans { list, line_of, in_order }
    }

    /// The words of the image that a plan names.
    pub(super) fn carry_out(&self, plan: Plan, snapshot: &Snapshot) -> Vec<(u64, u64)> {
        let events = snapshot.events.len();
        let range = |event: usize| &snapshot.lines[self.line_of[event]].1;
        let mut arrived = vec![false; events];
        let mut lands = None;
        match plan {
            Plan::Nothing => {}
            Plan::Everything => arrived.fill(true),
            Plan::Only(event) => {
                snapshot.close_over(range(event), event, &mut arrived);
                lands = Some(event);
            }
            Plan::Without(event) => {
                arrived.fill(true);
                snapshot.leave_out(range(event), event, &mut arrived);
            }
            Plan::WithoutWord(line, word) => {
                arrived.fill(true);
                let range = &snapshot.lines[line].1;
                for event in range.clone().filter(|event| snapshot.events[*event].word == word) {
                    snapshot.leave_out(range, event, &mut arrived);
                }
            }
            Plan::OnlyLine(line) => arrived[snapshot.lines[line].1.clone()].fill(true),
            Plan::WithoutLine(line) => {
                arrived.fill(true);
                arrived[snapshot.lines[line].1.clone()].fill(false);
            }
            Plan::First(count) => self.in_order[..count].iter().for_each(|event| arrived[*event] = true),
            Plan::Last(count) => {
                for event in &self.in_order[events - count..] {
                    snapshot.close_over(range(*event), *event, &mut arrived);
                }
            }
        }
        snapshot.resolve(&arrived, lands)
    }
}
