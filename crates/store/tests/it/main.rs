//! Tests of the library through its public face, in one program.

mod examples;
mod full_pool;
mod guide;
mod heard;
mod hermitage;
mod long_transactions;
mod parts;
mod refused;
mod room;
mod settings;
mod transactions;
mod transfers;
