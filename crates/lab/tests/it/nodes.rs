//! Memory with several nodes: the lines of other nodes that writes change, counted exactly.
//!
//! Each key is changed by a client of another node than the one that wrote it: the worst case for a design
//! that marks or changes what it replaces.

use quipu::{Design, Options, Store};
use quipu_medium::sim::{Cost, SimOptions};
use quipu_medium::{Node, Region};

/// Keys that each node writes.
const KEYS: u64 = 200;

/// Remote lines that a put of a new key, an update and a delete write at most on two nodes, in the mean. On
/// four, half as many again. A line counts once for each call.
const MOST: &[(Design, [f64; 3])] = &[
    // The index is in DRAM, and a record that is replaced or deleted is not touched.
    (Design::QUIPU, [0.0, 0.0, 0.0]),
    (Design::FLATSTORE_H, [0.0, 0.0, 0.0]),
    (Design::FLATSTORE_M, [0.0, 0.0, 0.0]),
    (Design::NSTORE, [0.0, 0.0, 0.0]),
    // The dead are counted in DRAM.
    (Design::VIPER_PACMAN, [0.0, 0.0, 0.0]),
    // The old record is marked in its page.
    (Design::VIPER, [0.0, 1.0, 1.0]),
    // The index is in the pool: its zones lie where they were first needed.
    (Design::FLATSTORE_PH, [1.5, 1.5, 1.5]),
    // A sorted node shifts its entries one by one.
    (Design::FLATSTORE_FF, [18.0, 0.5, 0.8]),
    (Design::MPKV, [1.0, 1.0, 1.0]),
    (Design::MPKV_BASELINE, [2.0, 2.0, 3.0]),
    // All writes have one order, so all clients of a table write to one zone at a time.
    (Design::XP, [2.5, 3.3, 1.0]),
];

fn key(node: u16, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key[8..10].copy_from_slice(&node.to_be_bytes());
    key
}

struct Machine {
    region: Region,
    store: Store,
    nodes: u16,
}

impl Machine {
    fn new(design: Design, nodes: u16) -> Machine {
        let region = Region::sim(SimOptions { len: 32 << 20, nodes, ..SimOptions::default() });
        let options = Options::new().design(design).cleaner(false);
        let store = Store::create_on(region.clone(), &options).unwrap();
        let machine = Machine { region, store, nodes };
        // Begins the run, and gives each node room to write.
        machine.on_each_node(|node, client| client.put(&key(node, u64::MAX), &[0; 200]).unwrap());
        machine
    }

    fn on_each_node(&self, mut work: impl FnMut(u16, &mut quipu::Client)) -> Cost {
        let sim = self.region.simulator().unwrap();
        let before = sim.cost();
        for node in 0..self.nodes {
            self.region.pin(Node(node)).unwrap();
            work(node, &mut self.store.client());
        }
        sim.cost() - before
    }

    /// The costs of `KEYS` writes of each node to the keys of the node so many before it.
    fn change(&self, before: u16, mut write: impl FnMut(&mut quipu::Client, &[u8])) -> Cost {
        self.on_each_node(|node, client| {
            let other = (node + 2 * self.nodes - before) % self.nodes;
            (0..KEYS).for_each(|number| write(client, &key(other, number)));
        })
    }
}

#[test]
fn writes_reach_other_nodes_only_where_a_design_must() {
    let mut wrong = String::new();
    for design in Design::ALL.iter().copied() {
        let most = MOST.iter().find(|(known, _)| *known == design).expect("every design is named").1;
        for nodes in [2, 4] {
            let machine = Machine::new(design, nodes);
            let put = machine.on_each_node(|node, client| {
                (0..KEYS).for_each(|number| client.put(&key(node, number), &[1; 200]).unwrap());
            });
            let update = machine.change(1, |client, key| client.put(key, &[2; 200]).unwrap());
            // The node that has updated a key is not the one that deletes it.
            let delete = machine.change(2, |client, key| client.delete(key).unwrap());
            let each = |cost: &Cost| cost.remote_lines_written as f64 / (KEYS * u64::from(nodes)) as f64;
            let found = [&put, &update, &delete].map(each);
            let allowed = most.map(|most| if nodes == 2 { most } else { most * 1.5 });
            println!("{design}, {nodes} nodes: {found:.3?} remote lines a put, an update, a delete");
            if found.iter().zip(allowed).any(|(found, most)| *found > most) {
                wrong.push_str(&format!("{design}, {nodes} nodes: {found:?}, allowed {allowed:?}\n"));
            }
            // The matrix adds up.
            let all: u64 = put.written_by_nodes.iter().flatten().sum();
            let near: u64 = (0..usize::from(nodes)).map(|node| put.written_by_nodes[node][node]).sum();
            assert_eq!((all, all - near), (put.lines_written, put.remote_lines_written));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Compaction moves records within their node.
#[test]
fn compaction_keeps_records_where_they_are() {
    for design in [Design::QUIPU, Design::VIPER_PACMAN, Design::VIPER, Design::NSTORE] {
        let machine = Machine::new(design, 2);
        for version in 0..8 {
            machine.on_each_node(|node, client| {
                (0..KEYS * 2)
                    .for_each(|number| client.put(&key(node, number % 97), &[version; 900]).unwrap());
            });
        }
        machine.region.pin(Node(0)).unwrap();
        let (freed, _) = machine.store.compact().unwrap();
        assert!(freed > 0, "{design}");
        // Each node reads its own records near.
        let cost = machine.on_each_node(|node, client| {
            (0..97).for_each(|number| assert!(client.get(&key(node, number)).unwrap().is_some()));
        });
        let share = cost.remote_lines_read as f64 / cost.lines_read as f64;
        println!("{design}: {:.1} % of the lines read are remote", share * 100.0);
        assert!(share < 0.02, "{design}: {:?}", cost.read_by_nodes);
    }
}

/// Two tasks on two nodes with a schedule of the simulator's own: no put reaches over.
#[test]
fn tasks_of_two_nodes_write_near_at_the_same_time() {
    use quipu_medium::sim::sched;
    for seed in 0..20 {
        let machine = Machine::new(Design::QUIPU, 2);
        let before = machine.region.simulator().unwrap().cost();
        let task = |node: u16| -> Box<dyn FnOnce() + '_> {
            let (region, store) = (&machine.region, &machine.store);
            Box::new(move || {
                region.pin(Node(node)).unwrap();
                let mut client = store.client();
                (0..50).for_each(|number| client.put(&key(node, number), &[3; 300]).unwrap());
            })
        };
        sched::run(seed, vec![task(0), task(1)]).unwrap();
        let cost = machine.region.simulator().unwrap().cost() - before;
        assert_eq!(cost.remote_lines_written, 0, "seed {seed}: {:?}", cost.written_by_nodes);
        assert!(cost.written_by_nodes[0][0] > 250 && cost.written_by_nodes[1][1] > 250);
    }
}
