//! The record: how a key and its value stand in persistent memory, and how they prove that they do.
//!
//! A record certifies itself. Its first word is a keyed hash over the rest of the record, the pool's secret,
//! the *life number* of its segment and its own offset, so one fence makes a put durable: after a crash the
//! record is whole and counts, or it is torn and does not, and no separate commit mark has to be ordered behind
//! it. User bytes can never be mistaken for a record, because nobody outside knows the secret; bytes left from an
//! earlier life of the segment cannot either, because the life number differs.
//!
//! ```text
//!        0      1      2      3      4      5      6      7
//!    0 | check: keyed hash of everything behind it             |
//!    8 | sequence number                                       |
//!   16 | kind | flags| key length  | value length              |
//!   24 | optional fields, each 8-aligned, in the order of their flag bits
//!      | key bytes, value bytes, zeros to a multiple of 8      |
//! ```
//!
//! All integers are little-endian. Records start on multiples of 8 within their segment.

mod certify;
mod codec;
mod layout;
mod view;

pub(crate) use certify::mix;
pub use certify::{Certifier, LifeKey};
pub use codec::{Encoder, frame_len};
pub use layout::{
    Content, EXPIRES, EXPIRY_FIELD, HEADER, HINT, HINT_BITS, HINT_FIELD, Header, Kind, LENGTHS, format_table,
    padded,
};
pub use view::{RecordError, RecordView};
