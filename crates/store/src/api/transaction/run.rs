//! Transactions that are repeated when they met others.

use super::Transaction;
use crate::api::client::Client;
use crate::api::store::Store;
use crate::types::error::Error;
use crate::types::holder::{Holder, Holding};
use crate::types::isolation::Isolation;
use quipu_medium::Region;
use quipu_parts::sync::Waiter;

/// Tries that are repeated at once, since the other has ended by then.
const AT_ONCE: u32 = 2;

/// Bounds of a rest before a further try, in microseconds.
const SHORTEST_REST: u64 = 4;
const LONGEST_REST: u64 = 2_000;

impl Store {
    /// Runs a transaction by a client of its own; see [`Client::transact`]. For many, keep a client.
    ///
    /// # Errors
    /// As there.
    pub fn transact<T>(
        &self,
        isolation: Isolation,
        work: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.client().transact(isolation, work)
    }
}

impl Client {
    /// Calls `work` with a new transaction, and commits it. If the commit meets writes of others
    /// ([`Error::Conflict`]), it rests for a moment and does so again, until it succeeds. So `work` may be
    /// called several times. It also does so once if the pool has no room because the transaction itself held
    /// overwritten records. Any error of `work` rolls back and ends it; [`Error::Own`] is for reasons of the
    /// program.
    ///
    /// # Errors
    /// Those of `work`, of [`begin`](Client::begin) and of [`Transaction::commit`].
    ///
    /// ```
    /// # use quipu::{Design, Isolation, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let options = Options::new().design(Design::XP).size(16 << 20);
    /// # let store = Store::create(dir.path().join("pool"), &options)?;
    /// # let mut client = store.client();
    /// client.put_many(&[("alice", [10]), ("bob", [3])])?;
    /// client.transact(Isolation::Snapshot, |transaction| {
    ///     let [alice, bob] = [b"alice", &b"bob"[..]].map(|key| transaction.get(key));
    ///     let (alice, bob) = (alice?.expect("an account")[0], bob?.expect("an account")[0]);
    ///     transaction.put(b"alice", &[alice - 3])?;
    ///     transaction.put(b"bob", &[bob + 3])
    /// })?;
    /// assert_eq!(client.get(b"bob")?, Some(vec![6]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transact<T>(
        &mut self,
        isolation: Isolation,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut tries, mut has_held_room) = (0, false);
        loop {
            let mut transaction = self.begin(isolation)?;
            let done = work(&mut transaction).and_then(|result| transaction.commit().map(|()| result));
            match done {
                Err(Error::Conflict { .. }) => {}
                // The next one sees a later state.
                Err(Error::RoomHeld { holder, .. }) if self.is_own(&holder) && !has_held_room => {
                    has_held_room = true;
                }
                done => return done,
            }
            tries += 1;
            rest(self.session.engine().region(), tries);
        }
    }

    /// Whether this thread keeps the transaction that holds room back.
    fn is_own(&self, holder: &Holder) -> bool {
        let thread = self.session.engine().region().thread_number();
        holder.what == Holding::Transaction && holder.thread == Some(thread)
    }
}

/// Rests before a further try: longer each time, and not as long as others that began at the same moment.
fn rest(region: &Region, tries: u32) {
    if tries <= AT_ONCE {
        return Waiter::default().wait();
    }
    let longest = (SHORTEST_REST << (tries - AT_ONCE).min(20)).min(LONGEST_REST);
    let part = u64::from(region.thread_number()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ region.ticks()
        ^ u64::from(tries);
    region.pause(longest / 2 + part % (longest / 2 + 1));
}
