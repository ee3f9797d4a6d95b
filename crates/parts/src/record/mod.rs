//! The record: the form of a key and its value in persistent memory, and their proof. `docs/FORMAT.md` has
//! the bytes.
//!
//! A record certifies itself. Its first word is a keyed hash over the rest of the record, the pool's secret,
//! the *life number* of its segment and its own offset. So one fence makes a put durable: after a crash the
//! record is whole and counts, or it is torn and does not, and no separate commit mark has to be ordered
//! behind it. User bytes can never pass for a record, because nobody outside knows the secret. Bytes of an
//! earlier life of the segment cannot either, because the life number differs.

mod certify;
mod codec;
mod layout;
mod shown;
mod view;

pub(crate) use certify::mix;
pub use certify::{Certifier, LifeKey};
pub use codec::{Encoder, frame_len};
pub use layout::{
    COPY, Content, EXPIRES, EXPIRY_FIELD, HEADER, HINT_BITS, Header, Kind, LEADING, LEADING_FIELD, LENGTHS,
    PARENT, format_table, padded,
};
pub use shown::shown_key;
pub use view::{RecordError, RecordView};
