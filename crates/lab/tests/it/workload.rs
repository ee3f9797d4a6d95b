//! The core workloads make the requests that YCSB describes, and files that would mean something else are
//! refused.

use quipu_bench::workload::{
    AcknowledgedCounter, Distribution, InsertOrder, Operation, Requests, Workload, WorkloadError,
};

const REQUESTS: usize = 200_000;

/// Shares of read, update, insert, scan and read-modify-write; inserts are acknowledged at once.
fn shares(workload: &Workload, mut each: impl FnMut(Operation, u64)) -> [f64; 5] {
    let stored = AcknowledgedCounter::new(workload.records);
    let mut requests = Requests::new(workload, 1);
    let mut counts = [0u32; 5];
    for _ in 0..REQUESTS {
        let request = requests.next(&stored);
        each(request, stored.stored());
        counts[match request {
            Operation::Read(_) => 0,
            Operation::Update(_) => 1,
            Operation::Insert(number) => {
                stored.acknowledge(number);
                2
            }
            Operation::Scan(..) => 3,
            Operation::ReadModifyWrite(_) => 4,
        }] += 1;
    }
    counts.map(|count| f64::from(count) / REQUESTS as f64)
}

#[test]
fn published_workloads_have_their_mixes() {
    let mixes = [
        ("a", [0.5, 0.5, 0.0, 0.0, 0.0], Distribution::Zipfian),
        ("b", [0.95, 0.05, 0.0, 0.0, 0.0], Distribution::Zipfian),
        ("c", [1.0, 0.0, 0.0, 0.0, 0.0], Distribution::Zipfian),
        ("d", [0.95, 0.0, 0.05, 0.0, 0.0], Distribution::Latest),
        ("e", [0.0, 0.0, 0.05, 0.95, 0.0], Distribution::Zipfian),
        ("F", [0.5, 0.0, 0.0, 0.0, 0.5], Distribution::Zipfian),
    ];
    for (letter, mix, distribution) in mixes {
        let workload = Workload::published(letter).unwrap();
        assert_eq!(workload.distribution, distribution, "{letter}");
        assert_eq!((workload.value_size, workload.theta), (1000, 0.99), "{letter}");
        assert_eq!(workload.scans(), letter == "e");
        for (found, expected) in shares(&workload, |_, _| ()).into_iter().zip(mix) {
            assert!((found - expected).abs() < 0.005, "{letter}: {found} instead of {expected}");
        }
    }
    assert!(Workload::published("g").is_none());
}

#[test]
fn requests_name_only_stored_records_and_stay_within_scan_lengths() {
    for letter in ["a", "d", "e"] {
        let workload = Workload { records: 100, ..Workload::published(letter).unwrap() };
        shares(&workload, |request, stored| match request {
            Operation::Read(record) | Operation::Update(record) | Operation::ReadModifyWrite(record) => {
                assert!(record < stored);
            }
            Operation::Scan(record, length) => assert!(record < stored && (1..=100).contains(&length)),
            Operation::Insert(record) => assert_eq!(record, stored),
        });
    }
}

#[test]
fn latest_prefers_the_newest() {
    let workload = Workload { records: 10_000, ..Workload::published("d").unwrap() };
    let mut ages = [0u32; 2];
    let mut reads = 0;
    shares(&workload, |request, stored| {
        if let Operation::Read(record) = request {
            reads += 1;
            let age = stored - 1 - record;
            ages[0] += u32::from(age == 0);
            ages[1] += u32::from(age < stored / 100);
        }
    });
    let share = |count: u32| f64::from(count) / f64::from(reads);
    // Rank 1 of 10,000 to 20,000 items at 0.99 has 9 to 10 per cent; the first hundredth, more than half.
    assert!((0.085..0.110).contains(&share(ages[0])), "the newest record has {}", share(ages[0]));
    assert!(share(ages[1]) > 0.5, "the newest hundredth has {}", share(ages[1]));
}

#[test]
fn uniform_prefers_none() {
    let text = "recordcount=100\noperationcount=1000\nrequestdistribution=uniform";
    let workload = Workload::parse("flat", text).unwrap();
    let mut counts = [0u32; 100];
    shares(&workload, |request, _| {
        if let Operation::Read(record) | Operation::Update(record) = request {
            counts[record as usize] += 1;
        }
    });
    assert!(counts.iter().all(|count| (1_700..2_300).contains(count)), "{counts:?}");
}

#[test]
fn threads_ask_differently_and_seeds_repeat() {
    let workload = Workload { records: 1_000_000, ..Workload::published("a").unwrap() };
    let stored = AcknowledgedCounter::new(workload.records);
    let first = Requests::new(&workload, 9);
    let take = |mut requests: Requests| (0..100).map(|_| requests.next(&stored)).collect::<Vec<_>>();
    assert_eq!(take(first.for_thread(9, 1)), take(Requests::new(&workload, 9).for_thread(9, 1)));
    assert_ne!(take(first.for_thread(9, 1)), take(first.for_thread(9, 2)));
    assert_ne!(take(first.for_thread(9, 1)), take(first.for_thread(8, 1)));
}

#[test]
fn settings_are_read() {
    let text = "recordcount=5\noperationcount=7\nfieldcount=2\nfieldlength=50\ninsertorder=ordered\nzeropadding=12\n\
                minscanlength=3\nmaxscanlength=9\nscanlengthdistribution=zipfian\nzipfianconstant=0.5\n\
                threadcount=4\ntable=usertable";
    let workload = Workload::parse("mine", text).unwrap();
    assert_eq!((workload.records, workload.operations, workload.value_size), (5, 7, 100));
    assert_eq!((workload.insert_order, workload.zero_padding), (InsertOrder::Ordered, 12));
    assert_eq!((workload.scan_length, workload.zipfian_scans, workload.theta), ((3, 9), true, 0.5));
    let mut key = Vec::new();
    workload.naming().fill(5, &mut key);
    assert_eq!(key, b"user000000000005");
    let words = Workload::parse("words", "recordcount=5\noperationcount=7\nwordkeys=true").unwrap();
    let [mut one, mut other] = [Vec::new(), Vec::new()];
    words.naming().fill(5, &mut one);
    words.naming().fill(6, &mut other);
    assert!(one.len() == 8 && other.len() == 8 && one != other);
}

#[test]
fn files_that_mean_something_else_are_refused_by_key() {
    let refused = |line: &str| {
        Workload::parse("x", &format!("recordcount=5\noperationcount=5\n{line}")).unwrap_err().to_string()
    };
    assert!(refused("raedproportion=1").contains("`raedproportion`"));
    for (line, key) in [
        ("requestdistribution=hotspot", "`requestdistribution` is `hotspot`"),
        ("readproportion=1.5", "`readproportion` is `1.5`"),
        ("readproportion=NaN", "`readproportion`"),
        ("fieldlengthdistribution=uniform", "`fieldlengthdistribution`"),
        ("fieldcount=0", "`fieldcount`"),
        ("zipfianconstant=1", "`zipfianconstant`"),
        ("readallfields=false", "`readallfields`"),
        ("writeallfields=perhaps", "`writeallfields`"),
        ("wordkeys=2", "`wordkeys`"),
    ] {
        let message = refused(line);
        assert!(message.contains("line 3") && message.contains(key), "{message}");
    }
    assert_eq!(Workload::parse("x", "operationcount=1"), Err(WorkloadError::Missing { key: "recordcount" }));
    let none = "recordcount=5\noperationcount=5\nreadproportion=0\nupdateproportion=0";
    assert_eq!(Workload::parse("x", none), Err(WorkloadError::NoOperation));
    let crossed = "recordcount=5\noperationcount=5\nminscanlength=9\nmaxscanlength=2";
    assert!(matches!(Workload::parse("x", crossed), Err(WorkloadError::ScanBounds { least: 9, most: 2 })));
}
