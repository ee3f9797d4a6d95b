//! [`Tapes`]: all that chance decides in a history, written down.
//!
//! A history is a function of its tapes. A search draws them while it goes, and keeps what was used. A replay
//! reads them back; behind the end of a tape stands the smallest choice. So a tape may be cut and changed at
//! any place, and is still one: that is how histories become shorter (after Hypothesis; MacIver, Donaldson,
//! "Test-Case Reduction via Test-Case Generation", ECOOP'20).

use quipu_medium::sim::sched::Switch;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A source of chance that is the same on every machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(mix(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether an event of one chance in so many happens.
    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// SplitMix64's finish, which scatters a word.
pub(crate) fn mix(word: u64) -> u64 {
    let mut z = word;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Choices in the order in which they are made, each a distance from the smallest one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    pub(crate) choices: Vec<u64>,
    /// Choices that were made.
    pub(crate) used: usize,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Tapes {
    /// Names the images of cuts, and the entropy of the machine.
    pub(crate) seed: u64,
    /// That of the world, and then that of each task.
    pub(crate) tapes: Vec<Tape>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) switched: usize,
    /// The tasks that run.
    pub(crate) runs: Vec<bool>,
    /// Draws what the tapes do not have; `None` in a replay.
    random: Option<Random>,
    /// Switch points between switches, about.
    pace: u64,
}

/// The tape of the world: its clock, and the room in the pool.
pub(crate) const WORLD: usize = 0;

/// Switches of a history that are kept. Later ones hardly matter, and the tapes stay short.
const MOST_SWITCHES: usize = 1 << 12;

impl Tapes {
    /// Empty tapes for so many tasks, which are drawn from a seed.
    pub(crate) fn fresh(seed: u64, tasks: usize) -> Tapes {
        let mut random = Random::new(seed);
        let pace = [2, 6, 20, 80][random.below(4) as usize];
        let random = Some(random);
        let runs = vec![true; tasks];
        Tapes {
            seed,
            tapes: vec![Tape::default(); tasks + 1],
            switches: Vec::new(),
            switched: 0,
            runs,
            random,
            pace,
        }
    }

    /// The part of them that was used, rewound.
    pub(crate) fn used(&self) -> Tapes {
        let mut marks: Vec<usize> = self.tapes.iter().map(|tape| tape.used).collect();
        marks.push(self.switched);
        self.until(&marks)
    }

    /// How far they have been used.
    pub(crate) fn marks(&self) -> Vec<usize> {
        self.tapes.iter().map(|tape| tape.used).chain([self.switched]).collect()
    }

    /// The part of them before these marks, rewound.
    pub(crate) fn until(&self, marks: &[usize]) -> Tapes {
        let mut tapes = Tapes { random: None, switched: 0, ..self.clone() };
        for (tape, mark) in tapes.tapes.iter_mut().zip(marks) {
            tape.choices.truncate(*mark);
            tape.used = 0;
            // The smallest choice stands behind the end anyway.
            while tape.choices.last() == Some(&0) {
                tape.choices.pop();
            }
        }
        tapes.switches.truncate(marks.last().copied().unwrap_or(0));
        tapes
    }

    /// The next choice on a tape, from 0 to `most`. `draw` makes one where the tape has ended.
    fn choose(&mut self, tape: usize, most: u64, draw: impl FnOnce(&mut Random) -> u64) -> u64 {
        let Tape { choices, used } = &mut self.tapes[tape];
        let choice = match (choices.get(*used), &mut self.random) {
            (Some(choice), _) => (*choice).min(most),
            (None, Some(random)) => draw(random).min(most),
            (None, None) => 0,
        };
        if *used == choices.len() {
            choices.push(choice);
        }
        *used += 1;
        choice
    }

    /// A number in this range, for a task. Small distances from its start are drawn more often.
    pub(crate) fn draw(&mut self, tape: usize, range: RangeInclusive<u64>) -> u64 {
        let most = range.end() - range.start();
        let choice = self.choose(tape, most, |random| match most {
            u64::MAX => random.next(),
            most if random.one_in(4) => random.below(most.min(3) + 1),
            most => random.below(most + 1),
        });
        range.start() + choice
    }

    /// A choice of the world that is 0 but for one in so many.
    pub(crate) fn happens(&mut self, one_in: u64, most: u64) -> u64 {
        self.choose(WORLD, most, |random| if random.one_in(one_in) { 1 + random.below(most) } else { 0 })
    }

    /// The next switch of tasks.
    pub(crate) fn switch(&mut self) -> Option<Switch> {
        let next = match (self.switches.get(self.switched), &mut self.random) {
            (Some(switch), _) => *switch,
            (None, Some(random)) if self.switched < MOST_SWITCHES => {
                let switch = Switch { after: 1 + random.below(2 * self.pace), to: random.below(4) };
                self.switches.push(switch);
                switch
            }
            _ => return None,
        };
        self.switched += 1;
        Some(next)
    }
}

impl fmt::Display for Tapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let tapes: Vec<_> = self.tapes.iter().map(|tape| list(&tape.choices)).collect();
        let switches: Vec<_> =
            self.switches.iter().map(|switch| format!("{}.{}", switch.after, switch.to)).collect();
        let runs: String = self.runs.iter().map(|runs| if *runs { '1' } else { '0' }).collect();
        write!(f, "{}:{}:{}:{runs}", self.seed, tapes.join("/"), switches.join(","))
    }
}

impl FromStr for Tapes {
    type Err = String;

    fn from_str(text: &str) -> Result<Tapes, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is no number"));
        let list = |text: &str| {
            text.split(',').filter(|part| !part.is_empty()).map(number).collect::<Result<Vec<u64>, String>>()
        };
        let parts: Vec<&str> = text.split(':').collect();
        let [seed, tapes, switches, runs] = parts[..] else {
            return Err(format!("{text:?} is not of the form seed:tapes:switches:tasks"));
        };
        let switch = |text: &str| {
            let (after, to) = text.split_once('.').ok_or_else(|| format!("{text:?} is no switch"))?;
            Ok(Switch { after: number(after)?, to: number(to)? })
        };
        let tape = |text: &str| list(text).map(|choices| Tape { choices, used: 0 });
        Ok(Tapes {
            seed: number(seed)?,
            tapes: tapes.split('/').map(tape).collect::<Result<_, String>>()?,
            switches: switches
                .split(',')
                .filter(|part| !part.is_empty())
                .map(switch)
                .collect::<Result<_, String>>()?,
            switched: 0,
            runs: runs.chars().map(|runs| runs == '1').collect(),
            random: None,
            pace: 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_is_read_back_and_behind_it_stands_the_smallest() {
        let mut drawn = Tapes::fresh(7, 2);
        let choices: Vec<u64> = (0..20).map(|i| drawn.draw(1 + i % 2, 10..=1000)).collect();
        let worlds: Vec<u64> = (0..20).map(|_| drawn.happens(3, 5)).collect();
        let switches: Vec<_> = (0..5).map(|_| drawn.switch()).collect();
        assert!(choices.iter().any(|choice| *choice > 100) && worlds.contains(&0));
        let mut read: Tapes = drawn.used().to_string().parse().unwrap();
        assert_eq!(read.to_string(), drawn.used().to_string());
        assert_eq!((0..20).map(|i| read.draw(1 + i % 2, 10..=1000)).collect::<Vec<_>>(), choices);
        assert_eq!((0..20).map(|_| read.happens(3, 5)).collect::<Vec<_>>(), worlds);
        assert_eq!((0..5).map(|_| read.switch()).collect::<Vec<_>>(), switches);
        assert_eq!((read.draw(1, 10..=1000), read.happens(1, 5), read.switch()), (10, 0, None));
    }

    #[test]
    fn a_choice_that_is_too_large_now_is_the_largest() {
        let mut tapes: Tapes = "3:/9,9::1".parse().unwrap();
        assert_eq!((tapes.draw(1, 0..=4), tapes.draw(1, 5..=20)), (4, 14));
        for bad in ["", "3", "x:::", "3:a::1", "3:1:7:1"] {
            assert!(bad.parse::<Tapes>().is_err(), "{bad}");
        }
    }
}
