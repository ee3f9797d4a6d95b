//! Tests of topologies: what users write, and what systems describe.

use super::*;

#[test]
fn a_description_says_all_and_reads_back() {
    let topology: Topology = "0:0-3,8;1:4-7@10,21/23,10".parse().unwrap();
    assert_eq!(topology.nodes().collect::<Vec<_>>(), [Node(0), Node(1)]);
    assert_eq!(topology.processors(Node(0)), [0, 1, 2, 3, 8]);
    let distances = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| topology.distance(Node(a), Node(b)));
    assert_eq!(distances, [10, 21, 23, 10]);
    assert_eq!(topology.to_string(), "0:0-3,8;1:4-7@10,21/23,10");
    let short: Topology = "0:0;2:".parse().unwrap();
    assert_eq!((short.distance(Node(0), Node(2)), short.distance(Node(2), Node(2))), (20, 10));
    assert_eq!(short.to_string().parse::<Topology>().unwrap().processors(Node(2)), []);
}

#[test]
fn nonsense_is_refused_with_an_example() {
    for text in [
        "",
        "0",
        "0:x",
        "0:3-1",
        "0:0;0:1",
        "0:0;1:0",
        "0:0@",
        "0:0;1:1@10,20",
        "0:0@10,20",
        "0:0-99999999999",
    ] {
        let refused = text.parse::<Topology>().unwrap_err().to_string();
        assert!(refused.contains("0:0-3;1:4-7@10,21/21,10"), "{text}: {refused}");
    }
}

#[test]
fn the_system_describes_its_nodes_or_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Topology::of_system(folder.path()).nodes().count(), 1);
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("online", "0,2\n");
    write("node0/cpulist", "0-1\n");
    write("node0/distance", "10 17\n");
    write("node2/cpulist", "\n");
    write("node2/distance", "17 10\n");
    let topology = Topology::of_system(folder.path());
    assert_eq!(topology.to_string(), "0:0-1;2:@10,17/17,10");
    assert!(topology.pin(Node(2)).unwrap_err().to_string().contains("node 2"));
}

#[test]
fn a_thread_stays_where_it_is_pinned() {
    let topology = Topology::of_machine().unwrap();
    let here = topology.current();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            topology.pin(here).unwrap();
            assert_eq!(topology.current(), here);
        });
    });
}
