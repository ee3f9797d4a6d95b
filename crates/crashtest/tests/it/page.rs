//! The code of this crate's page, and of its section in `docs/GUIDE.md`, run as it stands there.

use quipu::Store;
use quipu_crashtest::{After, CrashTest, Task, ensure};
use std::sync::Arc;

// Your program.
fn place(client: &mut quipu::Client, order: u64) -> Result<(), quipu::Error> {
    client.put(format!("order/{order}").as_bytes(), b"open")?;
    client.put(format!("line/{order}").as_bytes(), b"1 llama")
}

#[should_panic(expected = "order 100: header true, line false")]
#[test]
fn an_order_has_its_line() {
    CrashTest::new(Ok)
        .tasks(2, |store: &Arc<Store>, task: &Task<u64>| {
            let mut client = store.client();
            for n in 0..task.draw(1..=8) {
                let order = task.id() * 100 + n;
                task.began(&order); // a cut may leave it, or not
                place(&mut client, order)?;
                task.done(&order); // a cut must leave it
            }
            Ok(())
        })
        .invariant(|store, after: &After<u64>| {
            let client = store.client();
            for order in after.began() {
                let header = client.contains_key(format!("order/{order}").as_bytes())?;
                let line = client.contains_key(format!("line/{order}").as_bytes())?;
                ensure!(header == line, "order {order}: header {header}, line {line}");
                ensure!(header || !after.is_done(order), "order {order} was placed, and is gone");
            }
            Ok(())
        })
        .check();
}

mod mended {
    #[test]
    fn an_order_is_placed_at_once() {
        quipu_crashtest::CrashTest::<_, ()>::new(Ok)
            .tasks(1, |store: &std::sync::Arc<quipu::Store>, _| Ok(place(&mut store.client(), 1)?))
            .invariant(|store, _| {
                let records = store.client().pin().keys().count();
                quipu_crashtest::ensure!(records != 1, "an order is there in part");
                Ok(())
            })
            .check();
    }

    fn place(client: &mut quipu::Client, order: u64) -> Result<(), quipu::Error> {
        let mut batch = quipu::WriteBatch::new();
        batch.put(format!("order/{order}").as_bytes(), b"open");
        batch.put(format!("line/{order}").as_bytes(), b"1 llama");
        client.write(&batch)
    }
}

/// The lines of a text that are not empty, each without its indentation.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_piece_of_the_page_stands_here() {
    let here = lines(include_str!("page.rs"));
    let page = include_str!("../../README.md");
    let mut pieces = 0;
    let blocks = page.split("```rust\n").skip(1).filter_map(|block| block.split("```").next());
    for piece in blocks.flat_map(|block| block.split("#[test]\n")).map(lines) {
        assert!(!piece.is_empty() && here.windows(piece.len()).any(|window| window == piece), "{piece:#?}");
        pieces += 1;
    }
    assert_eq!(pieces, 3);
}

#[test]
fn the_report_is_the_one_that_the_page_shows() {
    let page = include_str!("../../README.md");
    let shown = page.split("```text\n").nth(1).and_then(|block| block.split("```").next()).expect("a report");
    let panic = std::panic::catch_unwind(an_order_has_its_line).expect_err("a fault is found");
    let report = panic.downcast_ref::<String>().expect("a report is a text");
    // The test that runs has another name, and numbers are those of a version of the store.
    let plain = |text: &str| {
        let text = text.split(" cargo test ").next().unwrap_or_default();
        text.split(|letter: char| letter.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<String>()
    };
    assert_eq!(plain(report), plain(shown), "{report}");
}
