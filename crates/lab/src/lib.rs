//! What proves it.
