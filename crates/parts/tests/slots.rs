//! The heap of slots, alone: records of one size and of any, clients that run into each other, crashes, and what operations
//! cost.

#[path = "slots/batch.rs"]
mod batch;
#[path = "slots/cost.rs"]
mod cost;
#[path = "slots/crash.rs"]
mod crash;
#[path = "slots/damage.rs"]
mod damage;
#[path = "slots/model.rs"]
mod model;
#[path = "slots/reclaim.rs"]
mod reclaim;
#[path = "slots/support.rs"]
mod support;
#[path = "slots/threads.rs"]
mod threads;
#[path = "slots/twins.rs"]
mod twins;
