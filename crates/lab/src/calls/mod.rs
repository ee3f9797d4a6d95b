//! Calls: one operation, one performer and one exact model for the proofs that know what must hold.
//!
//! A [`Call`] is any call of the public interface, with keys and values by number. A [`Draw`] draws calls
//! from a seed. A [`Hand`] carries one out, as a program would, and the [`Model`] of its keys judges the
//! answer. A model is exact: nobody else writes its keys, so it knows what each must be. Only the expiry of a
//! value leaves room. Then the answer must have been right at some moment between two readings of the clock.
//!
//! Several models share a store if their keys begin with different [owners](Codec::key). A walk that goes
//! over everybody's keys must show exactly the own ones, and of the others only whole values in order.
//!
//! A new call of the interface is added to [`Call`], to the hand and to the model; then all proofs make it.
//!
//! - [`model`](crate::model) makes the calls of a seed on one thread, on every medium, and shortens failures.
//! - [`soak`](crate::soak) makes them for long on real threads, with everything that runs beside them.

mod call;
mod codec;
mod draw;
mod hand;
mod model;
#[cfg(test)]
mod model_tests;
mod pool;
mod verify;
mod walks;

pub use call::{Act, Call, Life, Look, Reply, Span, Write};
pub use codec::{Codec, Key, Value};
pub use draw::{Draw, Scope};
pub use hand::{Answer, Ends, Hand, Shown};
pub use model::Model;
pub use pool::vary;
pub(crate) use verify::prove;
pub use verify::verify;
