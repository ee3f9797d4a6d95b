//! placeholder
/// placeholder
pub struct Node(pub u16);
/// placeholder
pub struct Topology;
