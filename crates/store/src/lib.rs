//! A durable key-value store.
