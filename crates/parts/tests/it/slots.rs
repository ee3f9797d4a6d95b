//! The heap of slots, alone: records of one size and of any, clients that run into each other, crashes, and
//! what operations cost.

mod batch;
mod cost;
mod crash;
mod damage;
mod model;
mod nodes;
mod reclaim;
mod support;
mod threads;
mod twins;
