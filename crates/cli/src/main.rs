//! The quipu program.
fn main() {}
