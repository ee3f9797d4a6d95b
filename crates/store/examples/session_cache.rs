//! Sessions of a web application: each ends a while after it was last used, and all are still there after a
//! restart.
//!
//! ```sh
//! cargo run --release --example session_cache -- sessions.quipu 1800    # seconds until an idle session ends
//! > login 7f3a alice
//! > use 7f3a
//! > logout 7f3a
//! ```
//!
//! It shows values that expire: an expired session is absent for every reader at once, and compaction takes
//! its bytes. Using a session and making it last longer is one step, so that a logout in between is not
//! undone.

use quipu::{Change, Client, Entry, Error, Options, Store};
use std::io::BufRead;
use std::time::{Duration, SystemTime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [pool, seconds] = &arguments[..] else { return Err("usage: session_cache POOL SECONDS".into()) };
    let store = Store::open_or_create(pool, &Options::new().size(64 << 20))?;
    let mut sessions =
        Sessions { client: store.client(), idle: Duration::try_from_secs_f64(seconds.parse()?)? };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["login", token, user] => {
                println!("{}", if sessions.begin(token, user)? { "ok" } else { "taken" })
            }
            ["use", token] => println!("{}", sessions.touch(token)?.as_deref().unwrap_or("no session")),
            ["logout", token] => println!("{}", if sessions.end(token)? { "ok" } else { "no session" }),
            _ => println!("write login TOKEN USER, use TOKEN or logout TOKEN"),
        }
    }
    drop(sessions);
    Ok(store.close()?)
}

struct Sessions {
    client: Client,
    /// The time after which an unused session ends.
    idle: Duration,
}

impl Sessions {
    /// Begins a session, unless one has this token.
    fn begin(&mut self, token: &str, user: &str) -> Result<bool, Error> {
        let (ends, mut is_new) = (self.ends(), false);
        self.client.update_with(token.as_bytes(), |old| {
            is_new = old.is_none();
            if is_new { Change::put_until(user.as_bytes().to_vec(), ends) } else { Change::Keep }
        })?;
        Ok(is_new)
    }

    /// The user of a session, which lasts longer by that.
    fn touch(&mut self, token: &str) -> Result<Option<String>, Error> {
        let (ends, mut user) = (self.ends(), None);
        self.client.update_with(token.as_bytes(), |old| match old {
            None => Change::Keep,
            Some(Entry { value, .. }) => {
                user = Some(String::from_utf8_lossy(value).into_owned());
                Change::put_until(value, ends)
            }
        })?;
        Ok(user)
    }

    /// Ends the session, and tells whether there was one.
    fn end(&mut self, token: &str) -> Result<bool, Error> {
        self.client.remove(token.as_bytes())
    }

    /// The time at which a session ends that is used now, in milliseconds since 1970.
    fn ends(&self) -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.saturating_add(self.idle).as_millis() as u64
    }
}
