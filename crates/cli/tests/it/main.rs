//! The real program, run as people and scripts run it.

mod damage;
mod disk;
mod documents;
mod faults;
mod files;
mod forms;
mod help;
mod leftovers;
mod levels;
mod measuring;
mod pairs;
mod pools;
mod proving;
mod reading;
mod refusals;
mod scripts;
mod support;
mod tables;
mod transfer;
