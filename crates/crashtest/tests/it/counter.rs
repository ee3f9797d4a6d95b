//! A counter that two tasks raise: read and written in two calls it loses a step; by an update it does not.

use quipu::Client;
use quipu_crashtest::{After, CrashTest, FailureKind, Outcome, Task, ensure};
use std::sync::Arc;

type Store = Arc<quipu::Store>;

fn read(client: &Client) -> Outcome<u64> {
    Ok(client.get(b"count")?.map_or(0, |count| count[0].into()))
}

fn in_two_calls(client: &mut Client) -> Outcome {
    let count = read(client)?;
    client.put(b"count", &[count as u8 + 1])?;
    Ok(())
}

fn by_an_update(client: &mut Client) -> Outcome {
    client.update(b"count", |count| Some([count.map_or(0, |count| count[0]) + 1]))?;
    Ok(())
}

#[derive(Clone, Debug, PartialEq)]
struct Raise;

fn test(raise: fn(&mut Client) -> Outcome) -> CrashTest<Store, Raise> {
    CrashTest::new(Ok)
        .tasks(2, move |store: &Store, task: &Task<Raise>| {
            let mut client = store.client();
            for _ in 0..task.draw(1..=8) {
                task.began(&Raise);
                raise(&mut client)?;
                task.done(&Raise);
            }
            Ok(())
        })
        .invariant(|store, after: &After<Raise>| {
            let (done, began) = (after.done().count() as u64, after.began().len() as u64);
            let count = read(&store.client())?;
            ensure!((done..=began).contains(&count), "{count} of {done} done and {began} begun");
            Ok(())
        })
}

#[test]
fn a_counter_in_two_calls_loses_a_step() {
    let failure = test(in_two_calls).explore().unwrap_err();
    println!("{failure}");
    assert_eq!(failure.kind(), FailureKind::Invariant);
    assert!(failure.calls() <= 4, "{failure}");
}

#[test]
fn a_counter_by_an_update_holds() {
    let summary = test(by_an_update).cuts(10_000).check();
    println!("{summary:?}");
    assert!(summary.cuts >= 10_000 && summary.histories > 20, "{summary:?}");
}
