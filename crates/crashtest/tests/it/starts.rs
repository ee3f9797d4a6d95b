//! Programs that repair at their start what a cut has left: they run again after each cut, and are cut then.

use quipu::WriteBatch;
use quipu_crashtest::{After, CrashTest, FailureKind, Outcome, Task, ensure};
use std::sync::Arc;

/// A till that writes down a payment before it books it.
struct Till {
    store: Arc<quipu::Store>,
}

fn number(bytes: Option<Vec<u8>>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

impl Till {
    /// Books what a cut has left open. Between its two calls another cut lets it book the same once more.
    fn in_two_calls(store: Arc<quipu::Store>) -> Outcome<Till> {
        let mut client = store.client();
        let open = number(client.get(b"open")?);
        if open > 0 {
            let sum = number(client.get(b"sum")?) + open;
            client.put(b"sum", &sum.to_le_bytes())?;
            client.remove(b"open")?;
        }
        drop(client);
        Ok(Till { store })
    }

    fn at_once(store: Arc<quipu::Store>) -> Outcome<Till> {
        let mut client = store.client();
        let open = number(client.get(b"open")?);
        if open > 0 {
            let sum = number(client.get(b"sum")?) + open;
            client.write(WriteBatch::new().put(b"sum", &sum.to_le_bytes()).delete(b"open"))?;
        }
        drop(client);
        Ok(Till { store })
    }

    fn pay(&self, amount: u64) -> Outcome {
        let mut client = self.store.client();
        client.put(b"open", &amount.to_le_bytes())?;
        let sum = number(client.get(b"sum")?) + amount;
        client.write(WriteBatch::new().put(b"sum", &sum.to_le_bytes()).delete(b"open"))?;
        Ok(())
    }
}

fn test(start: fn(Arc<quipu::Store>) -> Outcome<Till>) -> CrashTest<Till, u64> {
    CrashTest::new(start)
        .tasks(1, |till: &Till, task: &Task<u64>| {
            for _ in 0..task.draw(1..4) {
                let amount = task.draw(1..100);
                task.began(&amount);
                till.pay(amount)?;
                task.done(&amount);
            }
            Ok(())
        })
        .invariant(|till, after: &After<u64>| {
            let (done, all) = (after.done().sum::<u64>(), after.began().iter().sum::<u64>());
            let sum = number(till.store.client().get(b"sum")?);
            ensure!(sum == done || sum == all, "the till has {sum}; {done} were paid, {all} at most");
            Ok(())
        })
}

#[test]
fn a_start_that_books_twice_is_found_by_a_cut_of_the_recovery() {
    let failure = test(Till::in_two_calls).explore().unwrap_err();
    println!("{failure}");
    assert_eq!(failure.kind(), FailureKind::Invariant);
    assert!(
        failure.to_string().contains("once more during the recovery") && failure.calls() <= 3,
        "{failure}"
    );
    // A recovery that is never cut does not show it.
    test(Till::in_two_calls).recoveries(0).check();
}

#[test]
fn a_start_that_books_at_once_holds() {
    test(Till::at_once).recoveries(3).cuts(5_000).check();
}

#[test]
fn a_start_that_fails_is_told_so() {
    let test = CrashTest::<(), ()>::new(|store| {
        let mut client = store.client();
        ensure!(client.put_if_absent(b"lock", b"held")?, "the lock of the last run is there");
        Ok(())
    });
    let failure = test.explore().unwrap_err();
    assert_eq!((failure.kind(), failure.calls()), (FailureKind::Start, 1), "{failure}");
    assert!(failure.what().contains("the lock of the last run is there"), "{failure}");
}
