//! Broken twins, and the seeds that convict them.

use super::{Broken, Shape, explore};
use quipu_parts::twin::Twin;

/// Broken twins, their shapes, the words that convict each, and seeds that do.
const TWINS: &[(Broken, Shape, &[&str], [u64; 3])] = &[
    (Broken::Rule(Twin::PiecesNotCounted), (true, true), &["number "], [2, 3, 4]),
    (Broken::Rule(Twin::OrderNotFollowed), (true, true), &["number "], [2, 3, 4]),
    (
        Broken::Rule(Twin::NotEnded),
        (true, true),
        &["accounted for", "number ", "was acknowledged"],
        [1, 2, 3],
    ),
    (Broken::Rule(Twin::FoundNotFlushed), (true, true), &["accounted for", "number "], [2, 4, 6]),
    (Broken::Rule(Twin::ThroughNotRaised), (true, true), &["accounted for", "was acknowledged"], [1, 2, 3]),
    (Broken::Rule(Twin::ThroughNotRaised), (false, true), &["accounted for", "was acknowledged"], [1, 2, 3]),
    (Broken::Rule(Twin::ChunksNotFlushed), (true, false), &["before the end of the memtable"], [1, 2, 4]),
    (Broken::Rule(Twin::LivesIgnored), (true, true), &["number ", "accounted for", "two zones"], [1, 2, 3]),
    (Broken::NewestFirst, (false, true), &["number "], [1, 2, 4]),
    (Broken::NotVisible, (false, true), &["accounted for", "end mark"], [3, 11, 15]),
];

#[test]
fn broken_twins_are_convicted() {
    for (broken, shape, charges, seeds) in TWINS {
        for seed in seeds {
            let (_, violation) = explore(*seed, Some(*broken), *shape, 6);
            let violation = violation.unwrap_or_default();
            let is_charged = charges.iter().any(|charge| violation.contains(charge));
            assert!(is_charged, "{broken:?} is not convicted by seed {seed}: {violation}");
        }
    }
}

/// Prints the first seeds from `QUIPU_SEED` on that convict each twin, to pin them: each whose name has
/// `QUIPU_TWIN` in it. None may get away.
#[test]
#[ignore = "a search: cargo test -p quipu-parts --test it chain_crash::twins::search -- --ignored --nocapture"]
fn search() {
    let first = std::env::var("QUIPU_SEED").map_or(1, |text| text.parse().expect("a number"));
    let only = std::env::var("QUIPU_TWIN").unwrap_or_default();
    for (broken, shape, ..) in TWINS.iter().filter(|twin| format!("{:?}", twin.0).contains(&only)) {
        let mut convictions = 0;
        for seed in first..first + 30 {
            let (states, violation) = explore(seed, Some(*broken), *shape, 6);
            println!("{broken:?} {shape:?} {seed}: {violation:?} after {states} states");
            convictions += u32::from(violation.is_some());
            if convictions == 4 {
                break;
            }
        }
        assert!(convictions > 0, "{broken:?} got away");
    }
}
