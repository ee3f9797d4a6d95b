//! Programs that cannot be simulated: each gets an error that names what it does, and none hangs.

use quipu_crashtest::{CrashTest, Failure, FailureKind, Mutex, Outcome, Task};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

type Store = Arc<quipu::Store>;

/// Two tasks that do this.
fn two(work: impl Fn(&Store, &Task<()>) -> Outcome + 'static) -> CrashTest<Store, ()> {
    CrashTest::new(Ok).tasks(2, work).cuts(200).patience(Duration::from_secs(1))
}

#[track_caller]
fn refused(test: CrashTest<Store, ()>, kind: FailureKind, words: &[&str]) -> Failure {
    let failure = test.explore().unwrap_err();
    assert_eq!(failure.kind(), kind, "{failure}");
    for word in words {
        assert!(failure.to_string().contains(word), "{word}: {failure}");
    }
    *failure
}

#[test]
fn a_thread_that_writes_is_refused_by_name() {
    let test = two(|store, _| {
        let mut client = store.client();
        let thread = std::thread::Builder::new().name("the saver".into());
        let done = thread.spawn(move || client.put(b"a", b"1"))?.join();
        Ok(done.map_err(|_| "the thread panicked")??)
    });
    refused(test, FailureKind::Refused, &["a thread", "the saver", "put", "CrashTest::tasks"]);
}

#[test]
fn a_thread_that_reads_is_refused_by_name_even_if_nobody_asks_how_it_ended() {
    let test = two(|store, _| {
        store.client().put(b"a", b"1")?;
        let store = store.clone();
        // Nobody looks at the panic of the thread.
        let _ = std::thread::spawn(move || store.client().get(b"a").map(drop)).join();
        Ok(())
    });
    refused(test, FailureKind::Refused, &["a thread", "get", "async runtime"]);
}

#[test]
fn a_thread_in_the_invariant_is_refused_by_name() {
    let test = two(|store, _| Ok(store.client().put(b"a", b"1")?)).invariant(|store, _| {
        std::thread::scope(|scope| scope.spawn(|| store.client().get(b"a").map(drop)).join()).ok();
        Ok(())
    });
    refused(test, FailureKind::Refused, &["a thread", "get"]);
}

/// Runs this test in a process of its own, which the stuck program ends.
#[track_caller]
fn ends_the_process(test: &str, stuck: fn(), words: &[&str]) {
    const CHILD: &str = "CRASHTEST_OF_A_STUCK_PROGRAM";
    if std::env::var_os(CHILD).is_some() {
        return stuck();
    }
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).args(["--exact", test]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{text}");
    for word in [&["has not called the store for 1s", test, "put(\"a\", \"1\")"], words].concat() {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_lock_held_over_a_call_ends_the_process_by_name() {
    fn stuck() {
        let lock = Arc::new(std::sync::Mutex::new(()));
        let test = two(move |store, _| {
            let _held = lock.lock().unwrap();
            for _ in 0..20 {
                store.client().put(b"a", b"1")?;
            }
            Ok(())
        });
        test.check();
    }
    let words = ["task 2 has not", "waits in the system", "std::sync::Mutex", "quipu_crashtest::Mutex"];
    ends_the_process("refusals::a_lock_held_over_a_call_ends_the_process_by_name", stuck, &words);
}

#[test]
fn a_future_that_waits_for_another_task_ends_the_process_by_name() {
    fn stuck() {
        let test = two(|store, task| {
            store.client().put(b"a", b"1")?;
            // As block_on does until somebody wakes its future.
            while task.id() == 1 {
                std::thread::park();
            }
            Ok(())
        });
        test.check();
    }
    let words = ["task 1 has not", "waits in the system", "async runtime in block_on"];
    ends_the_process(
        "refusals::a_future_that_waits_for_another_task_ends_the_process_by_name",
        stuck,
        &words,
    );
}

#[test]
fn a_loop_without_a_call_ends_the_process_by_name() {
    fn stuck() {
        let is_ready = Arc::new(AtomicBool::new(false));
        let test = two(move |store, task| {
            store.client().put(b"a", b"1")?;
            while task.id() == 1 && !is_ready.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            is_ready.store(true, Ordering::Relaxed);
            Ok(())
        });
        test.check();
    }
    ends_the_process(
        "refusals::a_loop_without_a_call_ends_the_process_by_name",
        stuck,
        &["task 1 has not", "It computes", "atomic"],
    );
}

#[test]
fn a_process_that_was_stopped_is_not_stuck() {
    const CHILD: &str = "CRASHTEST_OF_A_STOPPED_PROCESS";
    if std::env::var_os(CHILD).is_some() {
        let test = CrashTest::<Store, ()>::new(Ok).cuts(1).patience(Duration::from_secs(2));
        let test = test.tasks(1, |store, _| {
            eprintln!("sleeps");
            (0..10).for_each(|_| std::thread::sleep(Duration::from_millis(100)));
            Ok(store.client().put(b"a", b"1")?)
        });
        test.check();
        return;
    }
    let own = std::env::current_exe().unwrap();
    let name = "refusals::a_process_that_was_stopped_is_not_stuck";
    let mut child = Command::new(own);
    child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").stderr(Stdio::piped());
    let mut child = child.stdout(Stdio::null()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert_eq!(line, "sleeps\n");
    let signal = |name: &str| Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    // The watch looks meanwhile, and sees nothing happen.
    std::thread::sleep(Duration::from_millis(400));
    assert!(signal("-STOP").success());
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(signal("-CONT").success());
    let mut text = String::new();
    told.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
}

#[test]
fn a_lock_of_this_crate_may_be_held_over_a_call() {
    let count = Arc::new(Mutex::new(0));
    let test = two(move |store, _| {
        let mut held = count.lock().unwrap();
        *held += 1;
        store.client().put(b"a", &[*held as u8])?;
        Ok(())
    });
    test.cuts(500).check();
}

#[test]
fn tasks_that_wait_for_each_other_are_told_so() {
    type Locked = (Store, [Mutex<()>; 2]);
    let test = CrashTest::<Locked, ()>::new(|store| Ok((store, Default::default())));
    let test = test.tasks(2, |(store, locks), task| {
        let first = task.id() as usize - 1;
        let _held = locks[first].lock().unwrap();
        store.client().put(b"a", b"1")?;
        let _other = locks[1 - first].lock().unwrap();
        Ok(())
    });
    let failure = test.explore().unwrap_err();
    assert_eq!((failure.kind(), failure.calls()), (FailureKind::Task, 2), "{failure}");
    assert!(failure.what().contains("wait for each other"), "{failure}");
}

#[test]
fn a_task_that_looks_again_and_again_in_vain_is_told_so() {
    let test = two(|store, task| {
        while task.id() == 1 && store.client().get(b"never")?.is_none() {}
        Ok(())
    });
    let failure = refused(test, FailureKind::Task, &["do not end", " lines …"]);
    assert!(failure.history().len() > 1000 && failure.to_string().lines().count() < 100, "{failure}");
}

#[test]
fn a_task_may_look_again_and_again_for_what_another_one_does() {
    let test = two(|store, task| {
        if task.id() == 2 {
            store.client().put(b"ready", b"1")?;
        }
        while store.client().get(b"ready")?.is_none() {}
        Ok(())
    });
    test.check();
}

#[test]
fn a_program_that_does_not_repeat_itself_is_told_so() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let test = two(|store, _| {
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        store.client().put(b"run", &run.to_le_bytes())?;
        if run > 6 { Err("the seventh run".into()) } else { Ok(()) }
    });
    refused(test, FailureKind::NotRepeatable, &["not repeatable", "HashMap", "the seventh run"]);
}

#[test]
fn a_panic_of_a_task_is_told_with_its_place() {
    let test = two(|_, task| {
        assert!(task.draw(..=100) < 5, "too many");
        Ok(())
    });
    let failure = refused(test, FailureKind::Task, &["it panicked: too many, at ", "refusals.rs:"]);
    assert_eq!(failure.calls(), 0);
}

#[test]
fn an_event_that_did_not_begin_is_not_done() {
    let test = two(|_, task| {
        task.done(&());
        Ok(())
    });
    refused(test, FailureKind::Task, &["tell Task::began before"]);
}

#[test]
fn a_pool_that_is_too_small_is_told_so() {
    let test = two(|store, _| {
        let mut client = store.client();
        for key in 0..200u8 {
            client.put(&[key + 1], &[0; 4000])?;
        }
        Ok(())
    });
    refused(test.pool(256 << 10), FailureKind::Task, &["the pool is full", "CrashTest::pool"]);
}

#[test]
fn a_test_that_cannot_be_carried_out_is_told_so() {
    let test = || two(|_, _| Ok(()));
    refused(test().pool(4096), FailureKind::Setup, &["the pool cannot be created"]);
    refused(test().replay("quipu:1://:"), FailureKind::Setup, &["is not of the form"]);
    refused(test().replay("quipu:1:/::1"), FailureKind::Setup, &["a test with 1 tasks, and this one has 2"]);
    refused(test().replay("alpaca:1:/::1"), FailureKind::Setup, &["no design is called"]);
}
