//! Tests of the medium through its public face, in one program.

mod dram;
mod file;
mod memory_file;
mod parts;
mod read_only;
mod sim_cost;
mod sim_images;
mod sim_litmus;
mod sim_sched;
mod storage;
