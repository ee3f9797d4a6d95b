//! The watch over a program under test: it ends the process when the program waits for something that the
//! simulator does not know.
//!
//! All tasks share one thread of the system. If one of them waits in the system for another, that thread
//! stops for good, and nothing can be unwound. An error that names the place is better than a test that
//! hangs.

use crate::recorder::{END, Recorder};
use crate::report::lines_of;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The exit code of a failed test.
const FAILED: i32 = 101;

/// How often it looks, in the time of its patience.
const LOOKS: u32 = 8;

/// Lines of the history that are shown.
const SHOWN: usize = 12;

/// See the module's documentation.
pub(crate) struct Watch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches what the calling thread does, until it drops.
    pub(crate) fn new(recorder: Arc<Recorder>, patience: Duration) -> Watch {
        let ends = Arc::new(AtomicBool::new(false));
        let name = thread::current().name().unwrap_or("a crash test").to_owned();
        // Of Linux: where the system tells the state of this thread.
        let stat = std::fs::read_link("/proc/thread-self")
            .ok()
            .map(|own| PathBuf::from("/proc").join(own).join("stat"));
        let stops = ends.clone();
        let watch = move || {
            let (mut beats, mut quiet) = (recorder.beats(), Duration::ZERO);
            while !stops.load(Ordering::Relaxed) {
                let since = Instant::now();
                thread::park_timeout(patience / LOOKS);
                // A process that was stopped, by a debugger or a busy machine, has done nothing meanwhile.
                quiet += since.elapsed().min(patience / LOOKS);
                let now = recorder.beats();
                if now != beats {
                    (beats, quiet) = (now, Duration::ZERO);
                } else if quiet >= patience && !stops.load(Ordering::Relaxed) {
                    end_process(&recorder, &name, patience, stat);
                }
            }
        };
        // Without a thread there is no watch, and the test is the same.
        let thread = thread::Builder::new().name("quipu-crashtest watch".into()).spawn(watch).ok();
        Watch { ends, thread }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the watch would have been seen.
            let _ = thread.join();
        }
    }
}

/// Whether a thread waits in the system; `None` if the system does not tell.
fn is_asleep(stat: &PathBuf) -> Option<bool> {
    let text = std::fs::read_to_string(stat).ok()?;
    // The name before may have any letters.
    let state = text.rsplit_once(')')?.1.trim_start().chars().next()?;
    Some(state != 'R')
}

fn end_process(recorder: &Recorder, name: &str, patience: Duration, stat: Option<PathBuf>) -> ! {
    let lines = lines_of(&recorder.history().log);
    let lines = lines[lines.len().saturating_sub(SHOWN)..].join("\n  ");
    let who = match recorder.running() {
        0 => "the program, as it starts or is asked for the invariant,".to_owned(),
        END => "the program, as it drops,".to_owned(),
        task => format!("task {task}"),
    };
    let why = match stat.as_ref().and_then(is_asleep) {
        Some(true) => {
            "It waits in the system, for something that no task can give it while it waits:\n\
             - a std::sync::Mutex, RwLock or OnceLock that another task holds over a call of the store: take quipu_crashtest::Mutex;\n\
             - a channel, a Condvar, a Barrier, or the join of a thread that waits for a task: tasks share one thread of the system;\n\
             - an async runtime in block_on, whose future waits for another task or thread."
        }
        Some(false) => {
            "It computes. If it waits by looking at an atomic again and again, no other task can change that meanwhile: call the \
             store, or take quipu_crashtest::Mutex. If it has so much to compute, give the test more patience \
             (CrashTest::patience)."
        }
        None => "It waits for another task in the system, or computes for long.",
    };
    let text = format!(
        "\nquipu-crashtest: {name}: {who} has not called the store for {patience:?}, and the test cannot go on.\n{why}\n\n\
         Its last calls, in the history under way:\n\n  {lines}\n\nThe process ends here, since a thread that waits cannot be stopped.\n"
    );
    // Past the capture of output, which nobody would print any more. There is no one to tell of an error.
    let _ = std::io::stderr().write_all(text.as_bytes());
    std::process::exit(FAILED)
}
