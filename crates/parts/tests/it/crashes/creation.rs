//! Crashes while an index is created leave no index or an empty one, and no zone without an owner. The root
//! is kept in the pool, or in another place, where keeping it makes nothing else durable.

use super::at_each_operation;
use quipu_medium::sim::SimArena;
use quipu_parts::index::IndexRoot;
use quipu_parts::space::{Space, ZoneId};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// The zones of an empty index; `None` if there is no index.
pub type Open = fn(&Arc<Space>, IndexRoot) -> Option<Vec<ZoneId>>;

/// Creates an index in new pools and crashes at every operation.
pub fn leaks_nothing(
    new_pool: impl Fn() -> Arc<Space>,
    create: impl Fn(&Arc<Space>, &dyn Fn(IndexRoot)),
    open: Open,
) {
    for elsewhere in [false, true] {
        let space = new_pool();
        let arena = RefCell::new(SimArena::new());
        let (seen, kept) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(None)));
        let (noted, there) = (seen.clone(), kept.clone());
        let mut point = 0;
        at_each_operation(
            space.region(),
            move |snapshot| {
                point += 1;
                for image in snapshot.images(point, 40) {
                    let region = arena.borrow_mut().boot(snapshot, &image, point);
                    let space = Arc::new(Space::open(region).expect("a pool").0);
                    let root = if elsewhere { there.get() } else { root_in(&space) };
                    noted.borrow_mut().push(created(&space, root, open));
                }
            },
            || {
                create(&space, &|root| match elsewhere {
                    true => kept.set(Some(root)),
                    false => space.update_superblock(|superblock| {
                        root.write_to_prefix(&mut superblock.settings).expect("room");
                    }),
                });
            },
        );
        for answer in ["no root", "no zone", "empty"] {
            assert!(seen.borrow().contains(&answer), "no crash left {answer}");
        }
    }
}

fn root_in(space: &Space) -> Option<IndexRoot> {
    let (root, _) = IndexRoot::read_from_prefix(&space.superblock().settings).expect("room");
    (root != IndexRoot::new_zeroed()).then_some(root)
}

/// What has been created, and that there is nothing else.
fn created(space: &Arc<Space>, root: Option<IndexRoot>, open: Open) -> &'static str {
    let zones = root.map(|root| open(space, root));
    assert_eq!(space.committed_zones(), zones.clone().flatten().unwrap_or_default());
    match zones {
        Some(Some(_)) => "empty",
        Some(None) => "no zone",
        None => "no root",
    }
}
