//! Panics of a program under test: kept for the report, and not printed. A search meets hundreds of them.
//!
//! The hook of the process is wrapped once. On threads that do not test it does what it did before.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

/// The beginning of what the standard library says of a panic that ends the process, as one of a destructor
/// while another one unwinds.
const ABORTS: &str = "panic in a ";

thread_local! {
    static TESTS: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// While it lives, panics of this thread are kept.
pub(crate) struct Kept(());

impl Kept {
    pub(crate) fn new() -> Kept {
        static WRAPPED: Once = Once::new();
        WRAPPED.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !TESTS.get() {
                    return before(info);
                }
                let payload = info.payload();
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                let said = text.unwrap_or("a panic without a message");
                if said.starts_with(ABORTS) {
                    // The process ends now, and there will be no report.
                    eprintln!("quipu-crashtest: before that, {}", LAST.take().unwrap_or_default());
                    return before(info);
                }
                let place = info.location().map_or_else(String::new, |place| format!(", at {place}"));
                LAST.set(Some(format!("{said}{place}")));
            }));
        });
        TESTS.set(true);
        Kept(())
    }

    /// The last panic of this thread, with its place.
    pub(crate) fn take() -> Option<String> {
        LAST.take()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        TESTS.set(false);
    }
}
