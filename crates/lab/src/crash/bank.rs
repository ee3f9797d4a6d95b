//! The accounts of a run of transfers, and their sum, which no transfer changes.
//!
//! An account is a key of any table. The name of its value ends with the amount, so that a state tells it; an
//! absent account has nothing. Transfers read before they write, so the names of their values are made while
//! they run.

use super::oracle::{State, ValueId};

/// Bits of the name of a value that are its amount, and the most that an account can have.
const BITS: u32 = 6;
pub(super) const MOST: u64 = (1 << BITS) - 1;

/// The amount of each account at first. Its value has the usual length, so that one batch has room for all.
const FIRST: u64 = 23;

/// How far the first deposit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deposit {
    Missing,
    Running,
    Done,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Bank {
    accounts: u64,
    next: ValueId,
    deposit: Deposit,
    commits: u32,
}

/// The amount of an account.
pub(super) fn amount(state: State) -> u64 {
    state.unwrap_or_default() & MOST
}

/// The sum of all of these accounts.
pub(super) fn sum(states: &[State]) -> u64 {
    states.iter().copied().map(amount).sum()
}

impl Bank {
    /// The bank of accounts that were found in these states.
    pub(super) fn new(accounts: &[State]) -> Bank {
        let deposit = if sum(accounts) > 0 { Deposit::Done } else { Deposit::Missing };
        Bank { accounts: accounts.len() as u64, next: 0, deposit, commits: 0 }
    }

    /// Values that are written from now on have names from this one on.
    pub(super) fn names_from(&mut self, first: ValueId) {
        self.next = first & !MOST;
    }

    /// The state of an account that gets this amount: a value of a name that no other has, or none.
    pub(super) fn state(&mut self, amount: u64) -> State {
        assert!(amount <= MOST, "an amount that a name has room for");
        self.next += 1 << BITS;
        (amount > 0).then_some(self.next | amount)
    }

    /// The amount that each account gets first, if none has any yet.
    pub(super) fn deposits(&self) -> Option<u64> {
        (self.deposit == Deposit::Missing).then_some(FIRST)
    }

    /// The first deposit is being written, or was, or was refused.
    pub(super) fn deposit_begins(&mut self) {
        self.deposit = Deposit::Running;
    }

    pub(super) fn deposit_ends(&mut self, done: bool) {
        self.deposit = if done { Deposit::Done } else { Deposit::Missing };
    }

    /// A transaction that wrote has committed.
    pub(super) fn committed(&mut self) {
        self.commits += 1;
    }

    /// Transactions that have.
    pub(super) fn commits(&self) -> u32 {
        self.commits
    }

    /// The sum of all accounts after the first deposit.
    pub(super) fn total(&self) -> u64 {
        self.accounts * FIRST
    }

    /// The sums that a crash now may leave.
    pub(super) fn sums(&self) -> Vec<u64> {
        match self.deposit {
            Deposit::Missing => vec![0],
            Deposit::Running => vec![0, self.total()],
            Deposit::Done => vec![self.total()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deposit_in_flight_is_there_or_not() {
        let mut bank = Bank::new(&[None; 4]);
        assert_eq!((bank.sums(), bank.deposits()), (vec![0], Some(FIRST)));
        bank.deposit_begins();
        assert_eq!(bank.sums(), [0, 4 * FIRST]);
        let states = [(); 4].map(|()| bank.state(FIRST));
        bank.deposit_ends(true);
        assert_eq!((bank.sums(), bank.deposits()), (vec![4 * FIRST], None));
        assert_eq!((sum(&states), Bank::new(&states).sums()), (4 * FIRST, bank.sums()));
    }

    #[test]
    fn names_differ_and_tell_the_amount() {
        let mut bank = Bank::new(&[]);
        bank.names_from(1 << 20);
        let states = [7, MOST, 7, 0].map(|amount| bank.state(amount));
        assert_eq!(states.map(amount), [7, MOST, 7, 0]);
        assert!(states[0] != states[2] && states[3].is_none());
        assert!(states[..3].iter().all(|state| *state > Some(1 << 20)));
    }
}
