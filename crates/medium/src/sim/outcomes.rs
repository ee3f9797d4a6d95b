//! Everything that one line may hold after a crash: all of it, or a random piece.
//!
//! Atomic words of a line arrive as a prefix of their sequence, and that prefix forces plain words to have
//! arrived. Given its length, the words of the line are independent: each holds its last forced value (or the
//! durable one), or the value of a later plain event, or that of any non-temporal event. So the outcomes of a
//! line are a union, over the length of the prefix, of products over its words.

use super::line::{Kind, Pending, WORDS};
use super::random::Random;
use std::collections::HashSet;

/// Values of a line's words; `None` where the durable one stays.
pub(super) type Values = [Option<u64>; WORDS];

/// The possible values of each word, given the number of arrived atomic words. Never empty.
type Choices = [Vec<Option<u64>>; WORDS];

fn atomics(events: &[Pending]) -> usize {
    events.iter().filter(|event| event.kind == Kind::Atomic).count()
}

fn choices(events: &[Pending], arrived: usize) -> Choices {
    let mut choices: Choices = std::array::from_fn(|_| vec![None]);
    let mut left = atomics(events);
    let mut owners = Vec::new();
    let mut settled = [false; WORDS];
    // Backwards: the first forced event met on a word is its last one, and everything cached before it is
    // covered.
    for event in events.iter().rev() {
        let word = usize::from(event.word);
        let forced = match event.kind {
            Kind::Atomic => {
                left -= 1;
                let counts = left < arrived;
                if counts {
                    owners.push(event.owner);
                } else {
                    continue;
                }
                true
            }
            Kind::Plain => owners.contains(&event.owner),
            Kind::NonTemporal => false,
        };
        let value = Some(event.value);
        if forced && !settled[word] {
            settled[word] = true;
            choices[word][0] = value;
        } else if event.kind == Kind::NonTemporal || (event.kind == Kind::Plain && !settled[word]) {
            choices[word].push(value);
        }
    }
    for values in &mut choices {
        let mut seen = Vec::new();
        values.retain(|value| {
            let new = !seen.contains(value);
            seen.push(*value);
            new
        });
    }
    choices
}

/// An upper bound on the number of outcomes.
pub(super) fn count(events: &[Pending]) -> usize {
    (0..=atomics(events)).fold(0usize, |sum, arrived| {
        let product = choices(events, arrived)
            .iter()
            .fold(1usize, |product, values| product.saturating_mul(values.len()));
        sum.saturating_add(product)
    })
}

/// All outcomes. For lines of which [`count`] is small.
pub(super) fn all(events: &[Pending]) -> Vec<Values> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for arrived in 0..=atomics(events) {
        let choices = choices(events, arrived);
        let mut digits = [0; WORDS];
        loop {
            let values: Values = std::array::from_fn(|word| choices[word][digits[word]]);
            if seen.insert(values) {
                found.push(values);
            }
            if !advance(&mut digits, |word| choices[word].len()) {
                break;
            }
        }
    }
    found
}

/// Counts one up in a number whose digits have different bases. Whether there was a next number.
pub(super) fn advance(digits: &mut [usize], base: impl Fn(usize) -> usize) -> bool {
    for (place, digit) in digits.iter_mut().enumerate() {
        *digit += 1;
        if *digit < base(place) {
            return true;
        }
        *digit = 0;
    }
    false
}

/// One outcome; `density` of 256 is the chance that a word, and the atomic prefix, arrived as written last.
///
/// It walks as [`choices`] does, and keeps one candidate a word, each with equal chance. So a sample of
/// thousands of lines allocates nothing.
pub(super) fn sample(events: &[Pending], random: &mut Random, density: u64) -> Values {
    #[derive(Clone, Copy, Default)]
    struct Candidate {
        newest: Option<u64>,
        drawn: Option<u64>,
        others: u64,
        settled: bool,
    }
    let mut left = atomics(events);
    let arrived =
        if left == 0 || random.below(256) < density { left } else { random.below(left as u64 + 1) as usize };
    let mut owners = Vec::new();
    let mut words = [Candidate::default(); WORDS];
    for event in events.iter().rev() {
        let word = &mut words[usize::from(event.word)];
        let mut optional = event.kind == Kind::NonTemporal;
        if event.kind == Kind::Atomic {
            left -= 1;
            if left >= arrived {
                continue;
            }
            owners.push(event.owner);
        } else if event.kind == Kind::Plain {
            optional = !owners.contains(&event.owner);
        }
        // Cached events below a forced one are covered; streamed ones may still land on top.
        if event.kind == Kind::NonTemporal || !word.settled {
            word.settled |= !optional;
            word.newest = word.newest.or(Some(event.value));
            word.others += 1;
            if random.below(word.others) == 0 {
                word.drawn = Some(event.value);
            }
        }
    }
    words.map(|word| {
        if word.newest.is_some() && random.below(256) < density {
            word.newest
        } else if !word.settled && random.below(word.others + 1) == 0 {
            // Nothing forced stands on the word, so the durable value may.
            None
        } else {
            word.drawn
        }
    })
}

#[cfg(test)]
#[path = "outcomes_tests.rs"]
mod tests;
