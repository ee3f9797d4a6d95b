//! An order and its line: in two puts a cut may leave one of them; in one batch it cannot.

use quipu::{Client, WriteBatch};
use quipu_crashtest::{After, CrashTest, FailureKind, Outcome, Task, ensure};
use std::sync::Arc;

type Store = Arc<quipu::Store>;

#[derive(Clone, Debug, PartialEq)]
struct Order(u64);

impl Order {
    fn keys(&self) -> (String, String) {
        (format!("order/{}", self.0), format!("line/{}", self.0))
    }
}

fn in_two_puts(client: &mut Client, order: &Order) -> Outcome {
    let (head, line) = order.keys();
    client.put(head.as_bytes(), b"open")?;
    client.put(line.as_bytes(), b"1 llama")?;
    Ok(())
}

fn in_a_batch(client: &mut Client, order: &Order) -> Outcome {
    let (head, line) = order.keys();
    let mut batch = WriteBatch::new();
    batch.put(head.as_bytes(), b"open").put(line.as_bytes(), b"1 llama");
    client.write(&batch)?;
    Ok(())
}

fn test(place: fn(&mut Client, &Order) -> Outcome) -> CrashTest<Store, Order> {
    CrashTest::new(Ok)
        .tasks(2, move |store: &Store, task: &Task<Order>| {
            let mut client = store.client();
            for n in 0..task.draw(1..=8) {
                let order = Order(task.id() * 100 + n);
                task.began(&order);
                place(&mut client, &order)?;
                task.done(&order);
            }
            Ok(())
        })
        .invariant(|store, after: &After<Order>| {
            let client = store.client();
            for order in after.began() {
                let (head, line) = order.keys();
                let (head, line) =
                    (client.contains_key(head.as_bytes())?, client.contains_key(line.as_bytes())?);
                ensure!(head == line, "{order:?}: header {head}, line {line}");
                ensure!(head || !after.is_done(order), "{order:?} was placed, and is gone");
            }
            Ok(())
        })
}

#[test]
fn an_order_in_two_puts_loses_its_line() {
    let failure = test(in_two_puts).explore().unwrap_err();
    println!("{failure}");
    assert_eq!(failure.kind(), FailureKind::Invariant);
    assert!(failure.calls() <= 2 && failure.what().contains("header true, line false"), "{failure}");
}

#[test]
fn an_order_in_a_batch_holds() {
    let summary = test(in_a_batch).cuts(10_000).check();
    println!("{summary:?}");
    assert!(summary.cuts >= 10_000 && summary.histories > 20, "{summary:?}");
}

#[test]
fn a_seed_replays_the_report_and_holds_for_the_mended_program() {
    let failure = test(in_two_puts).explore().unwrap_err();
    let seed = failure.seed().expect("a history has one");
    let again = test(in_two_puts).replay(seed).explore().unwrap_err();
    assert_eq!((again.history(), again.what()), (failure.history(), failure.what()));
    let summary = test(in_a_batch).replay(seed).check();
    assert!(summary.histories == 1 && summary.cuts > 10, "{summary:?}");
}
