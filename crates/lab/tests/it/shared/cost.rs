//! The cost of an act on the simulated medium of a store.

use quipu::Store;
use quipu_medium::sim::Cost;

pub fn cost_of(store: &Store, act: impl FnOnce()) -> Cost {
    let sim = store.region().simulator().expect("simulated");
    let before = sim.cost();
    act();
    sim.cost() - before
}
