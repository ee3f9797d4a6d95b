//! Log batching as in FlatStore, without its network and without the stealing of requests. A service thread
//! collects so many puts and issues them together, so that they become durable under one fence (PACMAN
//! sections 4.1 and 5).
//!
//! A put is answered when its batch is durable, and its latency counts from its arrival. A get of a key that
//! waits in the batch has the batch issued first, and is answered after it: no get returns a value that a
//! crash could take back. Other gets are answered at once.

use super::drive::{Access, Answer};
use super::engine::EngineClient;
use std::time::Instant;

/// One put in so many is timed: a prime, so that it is now here and now there in its batch.
const SAMPLE: u32 = 17;

/// A client that puts many at a time, or one. All errors are the engine's own.
pub struct Batched<C> {
    client: C,
    /// Room for a batch; none if each put is one.
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    waiting: usize,
    /// When a put came that waits and is timed.
    came: Option<Instant>,
    /// How long one has waited that was issued with the last call, in nanoseconds, if it was timed.
    waited_ns: Option<u64>,
    until_timed: u32,
    /// Whether a batch is one write, and not only issued together.
    is_whole: bool,
}

impl<C: EngineClient> Batched<C> {
    /// For batches of so many puts.
    pub fn new(client: C, size: usize) -> Batched<C> {
        let pairs = if size > 1 { vec![Default::default(); size] } else { Vec::new() };
        let (waiting, came, waited_ns) = (0, None, None);
        Batched { client, pairs, waiting, came, waited_ns, until_timed: SAMPLE, is_whole: false }
    }

    /// The same where each batch is one write, all of it or nothing, as far as the engine can promise that.
    pub fn whole(self) -> Batched<C> {
        Batched { is_whole: true, ..self }
    }

    /// Takes a put, key and value: it is carried out at once, or with the last one of its batch. The pair in
    /// its place is to be written over.
    #[inline(always)]
    pub fn put(&mut self, pair: &mut (Vec<u8>, Vec<u8>)) -> Result<(), C::Error> {
        if self.pairs.is_empty() {
            return self.client.put(&pair.0, &pair.1);
        }
        self.collect(pair)
    }

    /// Lets a put wait for its batch, or issues that with it.
    fn collect(&mut self, pair: &mut (Vec<u8>, Vec<u8>)) -> Result<(), C::Error> {
        self.until_timed -= 1;
        if self.until_timed == 0 {
            self.until_timed = SAMPLE;
            self.came = self.came.or_else(|| Some(Instant::now()));
        }
        std::mem::swap(&mut self.pairs[self.waiting], pair);
        self.waiting += 1;
        if self.waiting == self.pairs.len() { self.issue() } else { Ok(()) }
    }

    /// Reads a value, behind the puts of its key that wait.
    #[inline]
    pub fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, C::Error> {
        if self.pairs[..self.waiting].iter().any(|(waiting, _)| waiting == key) {
            self.issue()?;
        }
        self.client.get_into(key, out)
    }

    /// The answer of the last call, which was of this kind.
    ///
    /// Asked for apart, since what it shares a place with in a `Result` is handed on through memory.
    #[inline(always)]
    pub fn answer(&mut self, access: Access) -> Answer {
        if self.pairs.is_empty() {
            return access.into();
        }
        let is_answered = access == Access::Get;
        Answer { access: is_answered.then_some(access), waited_ns: self.waited_ns.take() }
    }

    /// The answer of the last call, with which all that waits is issued. Its own latency would be theirs too
    /// then, so it has none.
    pub fn finish(&mut self, last: Answer) -> Result<Answer, C::Error> {
        let is_alone = self.waiting == 0;
        self.issue()?;
        let waited_ns = last.waited_ns.or(self.waited_ns.take());
        Ok(Answer { access: last.access.filter(|_| is_alone), waited_ns })
    }

    /// Issues what waits.
    fn issue(&mut self) -> Result<(), C::Error> {
        if self.waiting > 0 {
            let pairs = &self.pairs[..self.waiting];
            if self.is_whole { self.client.write(pairs) } else { self.client.put_many(pairs) }?;
            self.waiting = 0;
        }
        self.waited_ns = self.came.take().map(|came| came.elapsed().as_nanos() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::convert::Infallible;

    /// The calls on an engine, in order.
    #[derive(Default)]
    struct Log(RefCell<Vec<String>>);

    impl EngineClient for &Log {
        type Error = Infallible;

        fn put(&mut self, key: &[u8], _value: &[u8]) -> Result<(), Infallible> {
            self.0.borrow_mut().push(format!("put {}", key[0]));
            Ok(())
        }

        fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Infallible> {
            let keys: Vec<u8> = pairs.iter().map(|(key, _)| key[0]).collect();
            self.0.borrow_mut().push(format!("put {keys:?}"));
            Ok(())
        }

        fn write(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Infallible> {
            self.0.borrow_mut().push(format!("write {}", pairs.len()));
            Ok(())
        }

        fn get_into(&mut self, key: &[u8], _out: &mut Vec<u8>) -> Result<bool, Infallible> {
            self.0.borrow_mut().push(format!("get {}", key[0]));
            Ok(true)
        }

        fn delete(&mut self, _key: &[u8]) -> Result<(), Infallible> {
            Ok(())
        }
    }

    fn put(batched: &mut Batched<&Log>, key: u8) -> Answer {
        batched.put(&mut (vec![key], vec![0])).expect("infallible");
        batched.answer(Access::Put)
    }

    #[test]
    fn puts_are_issued_together_and_before_a_get_of_one_of_them() {
        let log = Log::default();
        let mut batched = Batched::new(&log, 3);
        let mut out = Vec::new();
        [1, 2].iter().for_each(|key| assert!(put(&mut batched, *key).access.is_none(), "not answered yet"));
        assert!(batched.get_into(&[9], &mut out).expect("infallible"));
        assert_eq!(batched.answer(Access::Get).access, Some(Access::Get));
        batched.get_into(&[2], &mut out).expect("infallible");
        [3, 4, 5, 6].iter().for_each(|key| _ = put(&mut batched, *key));
        let get = Answer::from(Access::Get);
        assert_eq!(batched.finish(get).expect("infallible").access, None, "it has had a put issued");
        assert_eq!(batched.finish(get).expect("infallible").access, get.access, "nothing waits any more");
        let expected = ["get 9", "put [1, 2]", "get 2", "put [3, 4, 5]", "put [6]"];
        assert_eq!(*log.0.borrow(), expected);
    }

    #[test]
    fn a_batch_is_one_write_where_that_is_asked_for() {
        let log = Log::default();
        let mut batched = Batched::new(&log, 2).whole();
        [1, 2, 3].iter().for_each(|key| _ = put(&mut batched, *key));
        batched.finish(Access::Put.into()).expect("infallible");
        assert_eq!(*log.0.borrow(), ["write 2", "write 1"]);
    }

    #[test]
    fn a_batch_of_one_is_a_put() {
        let log = Log::default();
        let mut batched = Batched::new(&log, 1);
        assert_eq!(put(&mut batched, 7).access, Some(Access::Put));
        assert_eq!(*log.0.borrow(), ["put 7"]);
    }

    #[test]
    fn latencies_count_from_when_a_put_came() {
        let log = Log::default();
        let mut batched = Batched::new(&log, SAMPLE as usize + 1);
        (1..SAMPLE as u8).for_each(|key| assert_eq!(put(&mut batched, key).waited_ns, None));
        assert_eq!(put(&mut batched, 0).waited_ns, None, "timed from here on");
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(put(&mut batched, 0).waited_ns.is_some_and(|ns| ns >= 5_000_000));
        (0..=SAMPLE as u8).for_each(|key| _ = put(&mut batched, key));
        (0..SAMPLE as u8 - 1).for_each(|key| assert_eq!(put(&mut batched, key).waited_ns, None));
        let last = put(&mut batched, 0);
        let finished = batched.finish(last).expect("infallible");
        assert!(last.waited_ns.is_none() && finished.waited_ns.is_some(), "it has waited until the end");
    }
}
