//! Damage to any place of a pool of any design is told by every tool, or changes no answer.
//!
//! Each test strikes the pools of a design 500 times or more. `QUIPU_DAMAGE_SEEDS` is how many seeds each
//! pool gets (nightly: 5000), and `QUIPU_DAMAGE_SEED` is one alone, to replay a strike.

use quipu::Design;
use quipu_lab::damage::{CANNOT_TELL, Ground, Report, Verdict, strike, untouched};
use std::collections::BTreeSet;

/// Strikes of a design in a test.
const STRIKES: u64 = 500;

fn tells(design: Design) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let grounds = Ground::all(design);
    let seeds = match number("QUIPU_DAMAGE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("QUIPU_DAMAGE_SEEDS").unwrap_or(STRIKES.div_ceil(grounds.len() as u64)),
    };
    let mut report = Report::default();
    for ground in &grounds {
        let verdict = untouched(ground);
        assert!(matches!(verdict, Verdict::Harmless), "{}: {verdict:?}", ground.name());
        seeds.clone().for_each(|seed| strike(ground, seed, &mut report));
    }
    println!("{report}");
    let violations = report.violations.len();
    assert_eq!(violations, 0, "{design}: {violations} of {} strikes are silent", report.strikes());
}

#[test]
fn quipu() {
    tells(Design::QUIPU);
}

#[test]
fn viper() {
    tells(Design::VIPER);
}

#[test]
fn viper_pacman() {
    tells(Design::VIPER_PACMAN);
}

#[test]
fn flatstore_h() {
    tells(Design::FLATSTORE_H);
}

#[test]
fn flatstore_m() {
    tells(Design::FLATSTORE_M);
}

#[test]
fn nstore() {
    tells(Design::NSTORE);
}

#[test]
fn flatstore_ph() {
    tells(Design::FLATSTORE_PH);
}

#[test]
fn flatstore_ff() {
    tells(Design::FLATSTORE_FF);
}

#[test]
fn mpkv() {
    tells(Design::MPKV);
}

#[test]
fn mpkv_baseline() {
    tells(Design::MPKV_BASELINE);
}

#[test]
fn xp() {
    tells(Design::XP);
}

/// The exceptions are those that the documentation lists.
#[test]
fn the_document_lists_what_a_format_cannot_tell() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/PAPERS.md")).unwrap();
    let section = page.split("## What a format cannot tell\n").nth(1).expect("the section");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<(String, String)> = rows
        .flat_map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let designs = cells[1].split(", ").map(|design| design.trim_matches('`').to_owned());
            designs.map(|design| (design, cells[2].to_owned())).collect::<Vec<_>>()
        })
        .collect();
    let known: BTreeSet<(String, String)> = CANNOT_TELL
        .iter()
        .flat_map(|(design, places)| places.iter().map(|place| (design.to_string(), place.to_string())))
        .collect();
    assert_eq!(listed, known);
}
