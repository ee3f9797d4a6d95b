//! The model convicts wrong answers, and lets right ones pass.

use super::call::{Act, Call, Life, Look, Reply, Span, Write};
use super::codec::Codec;
use super::hand::{Answer, Ends, Shown};
use super::model::Model;
use quipu::internals::RecordForm;
use quipu::{Design, ErrorKind, Expiry};
use std::ops::Bound;

const CODEC: Codec = Codec { form: RecordForm::Variable, inline: 4096, limit: 100_000 };

/// Owner 1 of 2, with three tables.
fn model() -> Model {
    Model::new((1, 2), CODEC, Design::XP.can().clone(), 3)
}

fn key(key: u32) -> Vec<u8> {
    CODEC.key(1, key)
}

fn value(number: u32, value: u64) -> Vec<u8> {
    CODEC.value(&key(number), value)
}

fn saw(value: Option<Vec<u8>>) -> Answer {
    Answer::Saw(Shown { value, ..Shown::default() })
}

/// Whether an answer to a call on table 0 at a moment is right; its effect is taken over if so.
fn is_right(model: &mut Model, call: &Call, answer: &Answer, during: (u64, u64)) -> bool {
    model.judge(0, call, answer, during).is_ok()
}

fn put(model: &mut Model, number: u32, value: u64, life: Life) {
    let call = Call::One(number, Act::Put(value, life));
    assert!(is_right(model, &call, &Answer::Done, (100, 101)));
}

#[test]
fn only_the_value_of_a_key_is_its_answer() {
    let mut model = model();
    let get = Call::One(7, Act::Get);
    assert!(is_right(&mut model, &get, &saw(None), (1, 1)));
    put(&mut model, 7, 65, Life::Ever);
    assert!(is_right(&mut model, &get, &saw(Some(value(7, 65))), (1, 1)));
    for wrong in [None, Some(value(7, 66)), Some(value(8, 65)), Some(vec![])] {
        assert!(!is_right(&mut model, &get, &saw(wrong), (1, 1)));
    }
    let remove = Call::One(7, Act::Remove);
    assert!(!is_right(&mut model, &remove, &Answer::Did(false), (1, 1)));
    assert!(is_right(&mut model, &remove, &Answer::Did(true), (1, 1)));
    assert!(!is_right(&mut model, &get, &saw(Some(value(7, 65))), (1, 1)));
    let many = Call::GetMany(vec![7, 7]);
    assert!(!is_right(&mut model, &many, &Answer::Many(vec![None]), (1, 1)));
    assert!(is_right(&mut model, &many, &Answer::Many(vec![None, None]), (1, 1)));
}

#[test]
fn a_value_may_be_missed_only_once_it_may_have_expired() {
    let mut model = model();
    put(&mut model, 3, 65, Life::For(50));
    let get = Call::One(3, Act::Get);
    let (there, absent) = (saw(Some(value(3, 65))), saw(None));
    for (during, may_be_there, may_be_absent) in
        [((149, 149), true, false), ((149, 150), true, true), ((150, 160), false, true)]
    {
        assert_eq!(is_right(&mut model, &get, &there, during), may_be_there, "{during:?}");
        assert_eq!(is_right(&mut model, &get, &absent, during), may_be_absent, "{during:?}");
    }
    let expires = |expiry| {
        Answer::Saw(Shown {
            value: Some(value(3, 65)),
            is_there: Some(true),
            expiry: Some(expiry),
            version: None,
        })
    };
    assert!(is_right(&mut model, &get, &expires(Expiry::At(150)), (120, 120)));
    assert!(!is_right(&mut model, &get, &expires(Expiry::At(151)), (120, 120)));
    assert!(!is_right(&mut model, &get, &expires(Expiry::Never), (120, 120)));
    // The answer to a call decides what is there from then on.
    let absent_put = Call::One(3, Act::PutIfAbsent(97));
    assert!(is_right(&mut model, &absent_put, &Answer::Did(true), (149, 150)));
    assert!(is_right(&mut model, &get, &saw(Some(value(3, 97))), (900, 900)));
}

#[test]
fn a_version_rises_with_a_write_and_not_without() {
    let mut model = model();
    let seen = |value, version| {
        let (is_there, expiry) = (Some(true), Some(Expiry::Never));
        Answer::Saw(Shown { value: Some(value), is_there, expiry, version: Some(Some(version)) })
    };
    let get = Call::One(3, Act::Get);
    put(&mut model, 3, 65, Life::Ever);
    assert!(is_right(&mut model, &get, &seen(value(3, 65), 9), (1, 1)));
    assert!(is_right(&mut model, &get, &seen(value(3, 65), 9), (1, 1)));
    assert!(!is_right(&mut model, &get, &seen(value(3, 65), 10), (1, 1)));
    assert!(is_right(&mut model, &Call::One(3, Act::Delete), &Answer::Done, (1, 1)));
    put(&mut model, 3, 66, Life::Ever);
    assert!(!is_right(&mut model, &get, &seen(value(3, 66), 9), (1, 1)));
}

#[test]
fn a_walk_shows_all_keys_within_its_bounds_once_and_in_order() {
    let mut model = model();
    let numbers = [41, 43, 45];
    numbers.iter().for_each(|number| put(&mut model, *number, 65, Life::Ever));
    let pair = |number: u32| (key(number), value(number, 65));
    let span = Span { from: Bound::Included(41), to: Bound::Excluded(45) };
    let range = Call::Look(Look::Range(span, usize::MAX, 0));
    let ends = |front: &[u32], back: &[u32], met| {
        let pairs = |numbers: &[u32]| numbers.iter().map(|number| pair(*number)).collect();
        Answer::Ends(Ends { front: pairs(front), back: pairs(back), met })
    };
    for right in [ends(&[41, 43], &[], true), ends(&[41], &[43], true), ends(&[], &[43, 41], true)] {
        assert!(is_right(&mut model, &range, &right, (1, 1)), "{right:?}");
    }
    for right in [ends(&[41], &[], false), ends(&[], &[43], false), ends(&[], &[], false)] {
        assert!(is_right(&mut model, &range, &right, (1, 1)), "{right:?}");
    }
    for wrong in [
        ends(&[41], &[], true),
        ends(&[43], &[], false),
        ends(&[43, 41], &[], true),
        ends(&[41, 43, 45], &[], true),
        ends(&[41, 43], &[43], true),
        ends(&[41, 43], &[43], false),
        ends(&[], &[41], false),
    ] {
        assert!(!is_right(&mut model, &range, &wrong, (1, 1)), "{wrong:?}");
    }
    // Of others' keys only the values are proved, and that somebody has them.
    let (other, everything) = (CODEC.key(2, 9), Call::Look(Look::All(0)));
    let own: Vec<_> = numbers.iter().map(|number| pair(*number)).collect();
    for (stranger, is_one) in [
        ((other.clone(), CODEC.value(&other, 65)), true),
        ((other.clone(), value(41, 65)), false),
        ((CODEC.key(3, 9), vec![]), false),
    ] {
        let pairs = [&own[..], &[stranger]].concat();
        let keys = pairs.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(is_right(&mut model, &everything, &Answer::All(pairs, keys), (1, 1)), is_one);
    }
    let keys = own.iter().skip(1).map(|(key, _)| key.clone()).collect();
    assert!(!is_right(&mut model, &everything, &Answer::All(own, keys), (1, 1)));
}

#[test]
fn a_moment_stays_as_it_was() {
    let mut model = model();
    put(&mut model, 3, 65, Life::Ever);
    let moment = model.moment();
    assert!(is_right(&mut model, &Call::DeletePrefix(3, 1), &Answer::Done, (1, 1)));
    let (then, look) = (saw(Some(value(3, 65))), Look::Key(3));
    assert!(model.judge_look(&moment, 0, &look, &then, (1, 1)).is_ok());
    assert!(model.judge_look(&moment, 0, &look, &saw(None), (1, 1)).is_err());
    assert!(!is_right(&mut model, &Call::Look(look), &then, (1, 1)));
}

#[test]
fn a_refusal_needs_a_reason_and_a_reason_a_refusal() {
    let mut model = model();
    let refused = Answer::Refused(ErrorKind::Argument, "no".into());
    let too_large = Call::One(3, Act::UpdateWith(Reply::Put(31, Life::Ever)));
    assert!(is_right(&mut model, &too_large, &refused, (1, 1)));
    assert!(!is_right(&mut model, &too_large, &saw(None), (1, 1)));
    let batch = |value| Call::Batch(vec![(1, 3, Write::Put(value, Life::Ever))]);
    assert!(is_right(&mut model, &batch(29), &refused, (1, 1)));
    assert!(!is_right(&mut model, &batch(27), &refused, (1, 1)));
    assert!(!is_right(&mut model, &batch(29), &Answer::Done, (1, 1)));
    let mut of_slots = Model::new((1, 1), CODEC, Design::VIPER.can().clone(), 1);
    assert!(is_right(&mut of_slots, &batch(27), &refused, (1, 1)));
    assert!(!is_right(&mut of_slots, &Call::Snapshot, &Answer::Done, (1, 1)));
    // A full pool changes nothing, and damage is always a fault.
    let full = Answer::Refused(ErrorKind::Room, "full".into());
    assert!(is_right(&mut model, &Call::One(3, Act::Put(65, Life::Ever)), &full, (1, 1)));
    assert!(is_right(&mut model, &Call::One(3, Act::Get), &saw(None), (1, 1)));
    let damaged = Answer::Refused(ErrorKind::Damaged, "damaged".into());
    assert!(!is_right(&mut model, &Call::One(3, Act::Get), &damaged, (1, 1)));
}
