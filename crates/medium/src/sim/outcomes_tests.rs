//! The outcomes of a line against a second, slower reading of the rules: try every subset of the events.

use super::*;
use crate::sim::random::Random;
use std::collections::HashSet;

fn random_events(random: &mut Random) -> Vec<Pending> {
    (0..random.below(8))
        .map(|order| Pending {
            order,
            value: order + 1,
            owner: random.below(2) as u32 + 1,
            word: random.below(3) as u8,
            kind: [Kind::Plain, Kind::Atomic, Kind::NonTemporal][random.below(3) as usize],
            superseded: false,
        })
        .collect()
}

/// Whether this subset may have arrived, word for word as the design says it.
fn allowed(events: &[Pending], arrived: impl Fn(usize) -> bool) -> bool {
    (0..events.len()).filter(|later| arrived(*later) && events[*later].kind == Kind::Atomic).all(|later| {
        (0..later).all(|earlier| match events[earlier].kind {
            Kind::Atomic => arrived(earlier),
            Kind::Plain => arrived(earlier) || events[earlier].owner != events[later].owner,
            Kind::NonTemporal => true,
        })
    })
}

fn by_subsets(events: &[Pending]) -> HashSet<Values> {
    let mut found = HashSet::new();
    for subset in 0..1u32 << events.len() {
        let arrived = |index: usize| subset >> index & 1 == 1;
        if !allowed(events, arrived) {
            continue;
        }
        let choices: Choices = std::array::from_fn(|word| {
            let here = |index: &usize| arrived(*index) && usize::from(events[*index].word) == word;
            let streamed = |index: &usize| events[*index].kind == Kind::NonTemporal;
            let cached = (0..events.len()).filter(here).rfind(|index| !streamed(index));
            let mut values = vec![cached.map(|index| events[index].value)];
            values.extend(
                (0..events.len()).filter(here).filter(streamed).map(|index| Some(events[index].value)),
            );
            values
        });
        let mut digits = [0; WORDS];
        loop {
            found.insert(std::array::from_fn(|word| choices[word][digits[word]]));
            if !advance(&mut digits, |word| choices[word].len()) {
                break;
            }
        }
    }
    found
}

#[test]
fn all_outcomes_are_those_of_every_allowed_subset() {
    let mut random = Random::new(1);
    for _ in 0..3000 {
        let events = random_events(&mut random);
        let expected = by_subsets(&events);
        let found = all(&events);
        assert_eq!(found.len(), found.iter().collect::<HashSet<_>>().len());
        assert!(count(&events) >= found.len());
        assert_eq!(found.into_iter().collect::<HashSet<_>>(), expected, "{events:?}");
    }
}

#[test]
fn samples_are_outcomes_and_reach_all_of_them() {
    let mut random = Random::new(2);
    for _ in 0..100 {
        let events = random_events(&mut random);
        let expected: HashSet<_> = all(&events).into_iter().collect();
        let mut found = HashSet::new();
        for _ in 0..4000 {
            let density = [16, 128, 240][random.below(3) as usize];
            found.insert(sample(&events, &mut random, density));
        }
        assert!(found.is_subset(&expected), "{events:?}");
        assert!(found.len() * 10 >= expected.len() * 9, "{} of {}", found.len(), expected.len());
    }
}
