//! The judgement of the states that a cut at a moment may leave.

use crate::FailureKind;
use crate::moments::{Moment, Moments, Told};
use crate::program::Event;
use crate::recorder::{LONGEST, step_of};
use crate::search::{Found, Search, said};
use crate::tapes::Random;
use quipu_medium::Region;
use quipu_medium::sim::{Image, Observer, Sim, sched};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Images of a moment, and of one within a recovery.
const IMAGES: [usize; 2] = [3, 2];

/// One recovery of so many is cut itself, at so many moments.
const RECOVERIES: u64 = 8;
const MOMENTS: usize = 12;

/// One moment of so many is the death of the process, too.
const DEATHS: u64 = 6;

/// Which state a cut left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// There was no cut.
    None,
    /// Nothing had arrived that was not durable for certain.
    Nothing,
    /// Everything had arrived, or the process died alone.
    Everything,
    /// Some words had arrived.
    Some,
}

/// Which recoveries are cut themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// None.
    None,
    /// Some, in a search of many histories.
    Some,
    /// All, in a history of which it matters.
    All,
}

/// The machine after a cut.
struct Machine {
    region: Region,
    cut: Cut,
    /// In words.
    left: String,
}

impl<P: 'static, E: Event> Search<'_, P, E> {
    /// Judges what a cut at a moment may leave; so many cuts came before, in recoveries. All that is drawn
    /// for it follows from a seed.
    pub(crate) fn judge_moment(&mut self, moment: &Moment, depth: u32, seed: u64) -> Option<Found> {
        debug_assert!(self.phase_is_judging(), "calls would be told");
        let mut random = Random::new(seed ^ moment.operation << 8);
        let images = IMAGES[usize::from(depth > 0)];
        let [nothing, everything] = [moment.snapshot.nothing(), moment.snapshot.everything()];
        for image in moment.snapshot.images(random.next(), images) {
            let is_like = |cut| match cut {
                Cut::Nothing => image == nothing,
                Cut::Everything => image == everything,
                cut => cut == Cut::Some,
            };
            let like = [Cut::Everything, Cut::Nothing].into_iter().find(|cut| is_like(*cut));
            let cut = like.unwrap_or(Cut::Some);
            // One that is left out takes no chance from the others.
            let mut random = Random::new(random.next());
            let boot = random.next();
            let time = self.later(moment, &mut random);
            let state = (image.hash(), moment.told.lines, time);
            if self.only.is_some_and(|only| only != cut && !is_like(only)) || !self.seen.insert(state) {
                continue;
            }
            let region = self.arena.boot(&moment.snapshot, &image, boot);
            let machine = Machine { region, cut, left: left_of(&image, moment) };
            if let Some(found) = self.judge(moment, machine, (depth, time), &mut random) {
                return Some(found);
            }
        }
        if depth == 0 && random.one_in(DEATHS) && self.only.is_none_or(|only| only == Cut::Everything) {
            let region = self.arena.boot_process_crash(&moment.snapshot, random.next());
            let left = "only the process died, and all that it had written stayed".to_owned();
            let machine = Machine { region, cut: Cut::Everything, left };
            return self.judge(moment, machine, (depth, moment.told.now), &mut random);
        }
        None
    }

    /// The time at which the machine starts again: at once, or later.
    fn later(&self, moment: &Moment, random: &mut Random) -> u64 {
        let step = match self.test.moves_clock && random.one_in(2) {
            true => step_of(1 + random.below(LONGEST)),
            false => 0,
        };
        moment.told.now + step
    }

    /// Recovers one state, starts the program, and asks the invariant; now and then cuts that too.
    fn judge(
        &mut self,
        moment: &Moment,
        machine: Machine,
        (depth, time): (u32, u64),
        random: &mut Random,
    ) -> Option<Found> {
        self.recorder.beat();
        self.judged += 1;
        let Machine { region, cut, left } = machine;
        let told = &moment.told;
        let sim = region.simulator().expect("a simulated region").clone();
        sim.set_now(time);
        let within = Rc::new(RefCell::new(Moments::of(MOMENTS)));
        let is_drawn = random.one_in(RECOVERIES);
        let is_watched = match self.within {
            Within::None => false,
            Within::Some => is_drawn,
            Within::All => true,
        };
        if is_watched && depth < self.test.recoveries {
            sim.set_observer(Some(self.recovery_observer(&within, told)));
        }
        let (verdict, has_started) = (Cell::new(Ok(())), Cell::new(false));
        let task = || {
            verdict.set(self.open(region).and_then(|program| {
                sim.set_observer(None);
                has_started.set(true);
                let after = self.after(told.began, told.done, time);
                let asked = (self.test.invariant)(&program, &after);
                asked.map_err(|error| (FailureKind::Invariant, error.to_string()))
            }));
        };
        let ended = sched::run(random.next(), vec![Box::new(task)]);
        sim.set_observer(None);
        let verdict = match (self.recorder.refused(), ended) {
            (Some(what), _) => Err((FailureKind::Refused, what)),
            (None, Ok(())) => verdict.into_inner(),
            (None, ended) if has_started.get() => Err((FailureKind::Invariant, said(ended))),
            (None, ended) => Err((FailureKind::Start, said(ended))),
        };
        if let Err((kind, what)) = verdict {
            let (operation, again) = (moment.operation, ["", " again"][usize::from(depth > 1)]);
            let place = match depth {
                0 => match moment.end {
                    Some(end) => format!("the power failed {end}"),
                    None => format!("the power failed before operation {operation} on memory"),
                },
                _ => format!("the power failed{again}, and then once more during the recovery"),
            };
            return Some(self.found_at(told, (kind, what), (format!("{place}: {left}"), cut), depth));
        }
        let within = std::mem::take(&mut within.borrow_mut().list);
        let seed = random.next();
        within.iter().find_map(|moment| self.judge_moment(moment, depth + 1, seed))
    }

    /// Collects moments of a recovery, at which the same has been told as before it.
    fn recovery_observer(&self, within: &Rc<RefCell<Moments>>, told: &Rc<Told>) -> Observer {
        let (recorder, within, told) = (self.recorder.clone(), within.clone(), told.clone());
        Box::new(move |sim: &Sim, _| {
            recorder.beat();
            let calls = recorder.history().unheard;
            within.borrow_mut().pass(calls, || told.again(sim.now()), || sim.snapshot());
        })
    }
}

/// An image in words.
fn left_of(image: &Image, moment: &Moment) -> String {
    match (image.differences(&moment.snapshot).len(), moment.snapshot.pending_count()) {
        (0, _) => "everything that was written had arrived".into(),
        (missing, pending) => {
            format!("{missing} of the {pending} words that were on their way had not arrived")
        }
    }
}
