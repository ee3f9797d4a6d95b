//! Many open stores in one process: they share a few threads, are quiet while nobody calls, and a busy one
//! leaves the others in peace.

use quipu::{Client, Design, Options, Store};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const STORES: usize = 256;

/// Tells the process that it is the one for a test alone.
const ALONE: &str = "QUIPU_TEST_ALONE";

/// Runs a test of this module in a process of its own, in which nobody else starts threads.
fn alone(test: &str, work: impl FnOnce(&Path)) {
    if std::env::var_os(ALONE).is_some() {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        return work(folder.path());
    }
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let arguments = [&name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"];
    let output =
        Command::new(std::env::current_exe().unwrap()).args(arguments).env(ALONE, "").output().unwrap();
    let [said, complained] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
    print!("{said}");
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// The time that the threads of this process have run.
fn worked() -> Duration {
    let of_one = |task: fs::DirEntry| {
        let times = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        times.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
    };
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    Duration::from_nanos(tasks.map(|task| of_one(task.unwrap())).sum())
}

fn open(folder: &Path, size: u64) -> Vec<Store> {
    let options = Options::new().design(Design::XP).size(size).cleaner(true);
    let path = |number: usize| folder.join(number.to_string());
    (0..STORES).map(|number| Store::open_or_create(path(number), &options).unwrap()).collect()
}

fn put_some(stores: &[Store]) {
    for (number, store) in (0u64..).zip(stores) {
        let mut client = store.client();
        (0..10).for_each(|key: u64| client.put(&key.to_le_bytes(), &number.to_le_bytes()).unwrap());
    }
}

/// Share of a processor that the process takes, in per cent.
fn share(time: Duration) -> f64 {
    let (begun, before) = (Instant::now(), worked());
    std::thread::sleep(time);
    (worked() - before).as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0
}

fn open_and_rest(folder: &Path, time: Duration) {
    let stores = open(folder, 4 << 20);
    put_some(&stores);
    stores.into_iter().for_each(|store| store.close().unwrap());
    let (begun, before) = (Instant::now(), worked());
    let stores = open(folder, 4 << 20);
    let (took, cost) = (begun.elapsed(), worked() - before);
    // Others may have the processors meanwhile.
    assert!(took < Duration::from_secs(1) || cost < Duration::from_secs(1), "{took:?}, {cost:?} of work");
    put_some(&stores);
    let most = threads();
    assert!(most <= 16, "{most} threads");
    // What the puts have left to do.
    std::thread::sleep(Duration::from_millis(500));
    let share = share(time);
    assert!(share < 1.0, "{share} % of a processor while nobody calls");
    println!(
        "opened in {took:.0?} ({cost:.0?} of work), {most} threads, {share:.3} % of a processor at rest"
    );
    drop(stores);
    // That of the test, and that which waits for it.
    assert_eq!(threads(), 2);
}

#[test]
fn many_open_fast_share_threads_and_are_quiet() {
    alone("many_open_fast_share_threads_and_are_quiet", |folder| {
        open_and_rest(folder, Duration::from_secs(2));
    });
}

#[test]
#[ignore = "a minute: cargo test --release -p quipu-lab --test it many_stores:: -- --ignored --nocapture"]
fn many_are_quiet_for_a_minute() {
    alone("many_are_quiet_for_a_minute", |folder| open_and_rest(folder, Duration::from_secs(60)));
}

#[test]
#[ignore = "a minute, on a quiet machine: as above"]
fn a_busy_store_leaves_the_others_in_peace() {
    const SIZE: u64 = 64 << 20;
    alone("a_busy_store_leaves_the_others_in_peace", |folder| {
        let stores = open(folder, SIZE);
        let (stop, mut times, mut most) = (AtomicBool::new(false), Vec::new(), 0);
        std::thread::scope(|scope| {
            let busy = scope.spawn(|| overwrite(&mut stores[0].client(), SIZE, &stop));
            let mut others: Vec<Client> = stores[1..].iter().map(Store::client).collect();
            let (begun, count) = (Instant::now(), others.len() as u64);
            for call in 0..60 * count {
                let due = begun + Duration::from_secs(1) * call as u32 / count as u32;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let called = Instant::now();
                others[(call % count) as usize].put(&call.to_le_bytes(), &[1; 100]).unwrap();
                times.push(called.elapsed());
                if call % 64 == 0 {
                    most = most.max(threads());
                }
            }
            stop.store(true, Ordering::Relaxed);
            println!("{} puts a second of the busy one", busy.join().unwrap() / 60);
        });
        times.sort_unstable();
        let [median, high, highest] = [50, 99, 100].map(|percent| times[(times.len() - 1) * percent / 100]);
        println!(
            "the others: median {median:.1?}, 99 % within {high:.1?}, all {highest:.1?}; {most} threads"
        );
        assert!(high < Duration::from_millis(10) && most <= 16);
    });
}

/// Puts into a store as fast as it takes them, more than it has room for in the pool. Returns their number.
fn overwrite(client: &mut Client, size: u64, stop: &AtomicBool) -> u64 {
    let (mut count, mut random) = (0, 1u64);
    while !stop.load(Ordering::Relaxed) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        client.put(&((random >> 33) % (size / 128)).to_le_bytes(), &[7; 500]).unwrap();
        count += 1;
    }
    count
}
