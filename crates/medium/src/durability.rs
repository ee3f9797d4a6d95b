//! placeholder
/// placeholder
pub enum Durability {}
/// placeholder
pub struct Statement;
