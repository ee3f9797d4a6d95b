//! A queue of jobs that survives `kill -9`: no job that was taken in is lost, and none is recorded as done
//! twice.
//!
//! ```sh
//! printf 'weave\ndye\nknot\n' | cargo run --release --example job_queue -- queue.quipu add
//! cargo run --release --example job_queue -- queue.quipu work
//! cargo run --release --example job_queue -- queue.quipu list
//! ```
//!
//! It shows atomic batches: that a job is no longer to be done and its result are one write. A worker that
//! dies in between leaves the job as it was, and the next one does it again; so a job may be begun twice, and
//! its result is there once. Who has which job is not in the pool at all: one process has a pool at a time,
//! so claims end with it.

use quipu::{Client, Design, Options, Store, WriteBatch};
use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, Write};
use std::sync::Mutex;

/// Threads that work.
const WORKERS: usize = 4;

/// Its key, and what is to be done.
type Job = (Vec<u8>, Vec<u8>);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let [pool, command @ ("add" | "work" | "list")] = arguments[..] else {
        return Err("usage: job_queue POOL add|work|list".into());
    };
    let store = Store::open_or_create(pool, &Options::new().design(Design::FLATSTORE_M).size(64 << 20))?;
    match command {
        "add" => add(&mut store.client())?,
        "work" => work(&store)?,
        _ => list(&store.client())?,
    }
    Ok(store.close()?)
}

/// Takes in a job for each line of standard input. A number that it has printed is in the queue, even if it
/// dies then.
fn add(client: &mut Client) -> Result<(), Box<dyn Error>> {
    for job in std::io::stdin().lock().lines() {
        let job = job?;
        let mut number = 0u64;
        client.update(b"last", |last| {
            number = last.map_or(1, |last| u64::from_be_bytes(last.try_into().expect("eight bytes")) + 1);
            Some(number.to_be_bytes())
        })?;
        client.put(&key("todo", number), job.as_bytes())?;
        say(&format!("added {number}"))?;
    }
    Ok(())
}

/// Does jobs until there are none, the oldest first.
fn work(store: &Store) -> Result<(), Box<dyn Error>> {
    let claimed = Mutex::new(BTreeSet::new());
    let run = || -> Result<(), String> {
        let mut client = store.client();
        while let Some((todo, job)) = claim(&client, &claimed).map_err(|error| error.to_string())? {
            let number = todo.strip_prefix(b"todo/").expect("a job").to_owned();
            let result = perform(&job);
            let done = [b"done/", &number[..]].concat();
            let mut both = WriteBatch::new();
            both.delete(&todo).put(&done, &result);
            client.write(&both).map_err(|error| error.to_string())?;
            say(&format!("done {}", String::from_utf8_lossy(&number))).map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(run)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    Ok(())
}

/// The first job that no other worker has.
fn claim(client: &Client, claimed: &Mutex<BTreeSet<Vec<u8>>>) -> Result<Option<Job>, quipu::Error> {
    let mut claimed = claimed.lock().expect("no worker panics");
    let guard = client.pin();
    for pair in guard.prefix(b"todo/")? {
        let (key, job) = pair?;
        if claimed.insert(key.to_vec()) {
            return Ok(Some((key.into_owned(), job.into_owned())));
        }
    }
    Ok(None)
}

/// The work itself: here, the job in capitals, and some time.
fn perform(job: &[u8]) -> Vec<u8> {
    std::thread::sleep(std::time::Duration::from_millis(1));
    job.to_ascii_uppercase()
}

fn list(client: &Client) -> Result<(), Box<dyn Error>> {
    let guard = client.pin();
    for state in ["done/", "todo/"] {
        for pair in guard.prefix(state.as_bytes())? {
            let (key, value) = pair?;
            println!("{}\t{}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
        }
    }
    Ok(())
}

/// Keys in the order of their numbers.
fn key(state: &str, number: u64) -> Vec<u8> {
    format!("{state}/{number:012}").into_bytes()
}

/// Prints a line at once, whoever reads it.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
