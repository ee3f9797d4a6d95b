//! The tables of designs in the README and in the guide, made from the capabilities of the designs and from
//! the fences that the simulator counts.

use crate::shared::cost::cost_of;
use crate::shared::page::{self, RENEW};
use quipu::{Design, Options, Setting, Store};
use quipu_medium::Region;
use quipu_medium::sim::SimOptions;

/// A column: its title, and its cell for a design.
type Column = (&'static str, fn(Design) -> String);

const DESIGN: Column = ("design", |design| format!("`{design}`"));
const FROM: Column = ("from", |design| design.description().paper.into());
const ORDER: Column = ("order", |design| {
    if design.can().orders_on_request() { "`index=alex`".into() } else { yes(design.can().ordered) }
});
const TABLES: Column = ("tables", |design| yes(design.can().tables));
const BATCHES: Column = ("batches", |design| yes(design.can().batches));
const EXPIRY: Column = ("expiry", |design| yes(design.can().expiry));
const LARGE: Column = ("large values", |design| yes(design.can().large_values));
const IN_PLACE: Column = ("in place", |design| yes(design.can().updates_in_place));
const SALVAGE: Column = ("salvage", |design| yes(design.can().salvages));
const BEYOND: Column = ("larger than the pool", |design| yes(design.can().levels));
const INDEX: Column = ("index in", |design| {
    let chooses = Setting::of(design).any(|setting| setting.name == "offset-map");
    match design.can().index_in_pool {
        true => "pool",
        false if chooses => "DRAM, or pool (`offset-map=pm`)",
        false => "DRAM",
    }
    .into()
});
const FENCES: Column = ("fences a put", |design| fences_of_a_put(design).to_string());

/// The pages with a table, and its columns.
const PAGES: &[(&str, &[Column])] = &[
    ("README.md", &[DESIGN, FROM, ORDER, TABLES, BATCHES, BEYOND, INDEX, FENCES]),
    (
        "docs/GUIDE.md",
        &[DESIGN, ORDER, TABLES, BATCHES, EXPIRY, LARGE, IN_PLACE, SALVAGE, BEYOND, INDEX, FENCES],
    ),
];

fn yes(has: bool) -> String {
    if has { "yes" } else { "no" }.into()
}

/// Fences of a put of a new key, with 16 + 200 bytes: the median of many.
fn fences_of_a_put(design: Design) -> u64 {
    let region = Region::sim(SimOptions { len: 16 << 20, ..SimOptions::default() });
    let options = Options::new().design(design).zone_size(256 << 10).cleaner(false);
    let store = Store::create_on(region, &options).expect("a new pool");
    let mut client = store.client();
    let mut put = |number: u64| {
        let key = [number.to_be_bytes(), [0; 8]].concat();
        client.put(&key, &[1; 200]).expect("room");
    };
    (0..100).for_each(&mut put);
    let mut fences: Vec<u64> = (100..601).map(|number| cost_of(&store, || put(number)).fences).collect();
    fences.sort_unstable();
    fences[fences.len() / 2]
}

fn table(columns: &[Column]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut table = line(columns.iter().map(|(title, _)| (*title).into()).collect());
    table += &format!("|{}\n", "---|".repeat(columns.len()));
    for design in Design::ALL {
        table += &line(columns.iter().map(|(_, cell)| cell(*design)).collect());
    }
    table
}

/// A page with this table between its marks.
fn with_table(text: &str, table: &str) -> String {
    let (head, rest) = text.split_once("<!-- designs").expect("a mark before the table");
    let (_, tail) = rest.split_once("<!-- end -->").expect("a mark behind the table");
    format!("{head}<!-- designs: {RENEW} -->\n\n{table}\n<!-- end -->{tail}")
}

#[test]
fn tables_of_designs_are_made_from_the_code() {
    for (path, columns) in PAGES {
        page::hold(path, &with_table(&page::text(path), &table(columns)));
    }
}

#[test]
fn a_table_replaces_what_is_between_its_marks() {
    let page = with_table("before\n<!-- designs: x -->\nold\n<!-- end -->\nbehind\n", "| new |\n");
    assert_eq!(page, format!("before\n<!-- designs: {RENEW} -->\n\n| new |\n\n<!-- end -->\nbehind\n"));
}

#[test]
fn the_guide_says_which_designs_load_a_checkpoint() {
    let guide = page::text("docs/GUIDE.md");
    for design in Design::ALL {
        let says = guide.contains(&format!("\n| `{design}` | loads a checkpoint |"));
        assert_eq!(says, design.can().checkpoints, "{design}");
    }
}
