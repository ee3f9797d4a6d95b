//! The tables of `docs/FORMAT.md` have the fields, offsets and sizes of the structures. Their meanings stand
//! in the page alone.

use crate::shared::page;
use quipu::{Design, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::SimOptions;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = "docs/FORMAT.md";

type Fields = Vec<(String, usize, usize)>;

/// The page with the fields of these structures, each below its heading. Meanings stay with the names of
/// their fields.
fn with_fields(text: &str, structures: &BTreeMap<String, Fields>) -> String {
    let mut lines = text.lines().peekable();
    let mut written = String::new();
    let mut heading = "";
    let mut drawn = BTreeSet::new();
    while let Some(line) = lines.next() {
        written += &format!("{line}\n");
        heading = line.strip_prefix("### ").map_or(heading, str::trim);
        if !line.starts_with("| field | offset | size |") {
            continue;
        }
        let fields = structures.get(heading).unwrap_or_else(|| panic!("no structure is called {heading:?}"));
        assert!(drawn.insert(heading), "{heading} has two tables");
        written += &format!("{}\n", lines.next().expect("a line below the titles"));
        let mut meanings = BTreeMap::new();
        while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.splitn(5, '|').map(str::trim).collect();
            meanings.insert(cells[1].trim_matches('`'), cells[4]);
        }
        for (name, offset, size) in fields {
            let meaning = meanings.get(name.as_str()).unwrap_or(&"? |");
            written += &format!("| `{name}` | {offset} | {size} | {meaning}\n");
        }
    }
    let missing: Vec<_> = structures.keys().filter(|name| !drawn.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{PAGE} has no heading with a table for {missing:?}");
    written
}

/// The tables of the code.
fn built() -> BTreeMap<String, Fields> {
    let mut tables = quipu_parts::space::format_tables();
    tables.extend(quipu_parts::index::buckets::format_tables());
    tables.extend(quipu_parts::index::cceh::format_tables());
    tables.extend(quipu_parts::index::fastfair::format_tables());
    tables.extend(quipu_parts::heap::slots::format_tables());
    tables.extend(quipu_parts::heap::chain::format_tables());
    tables.extend(quipu::internals::checkpoint_tables());
    tables.extend(quipu::internals::memtables_checkpoint_tables());
    tables.extend(quipu::internals::settings_tables());
    tables.extend([
        quipu_parts::record::format_table(),
        quipu_parts::heap::values::format_table(),
        quipu_parts::heap::segments::format_table(),
    ]);
    let owned = |(name, offset, size): (&str, usize, usize)| (name.to_owned(), offset, size);
    tables
        .into_iter()
        .map(|(name, fields)| (name.to_owned(), fields.into_iter().map(owned).collect()))
        .collect()
}

#[test]
fn tables_of_fields_are_made_from_the_code() {
    let page = with_fields(&page::text(PAGE), &built());
    page::hold(PAGE, &page);
    assert!(!page.contains("| ? |"), "{PAGE}: a field has no meaning yet; replace its question mark");
}

#[test]
fn fields_follow_each_other_without_gaps() {
    for (name, fields) in built() {
        let mut end = 0;
        for (field, offset, size) in fields {
            assert_eq!(offset, end, "{name}.{field}");
            end += size;
        }
    }
}

#[test]
fn a_field_that_moves_comes_or_goes_changes_the_page() {
    let page = "### Head\n\n| field | offset | size | meaning |\n|---|---|---|---|\n| `old` | 0 | 8 | gone |\n\
                | `kept` | 8 | 4 | a \\| b |\n\nText.\n";
    let fields = vec![("kept".to_owned(), 0, 8), ("new".to_owned(), 8, 2)];
    let structures = BTreeMap::from([("Head".to_owned(), fields)]);
    let rows = "| `kept` | 0 | 8 | a \\| b |\n| `new` | 8 | 2 | ? |\n\nText.\n";
    let (titles, _) = page.split_once("| `old`").expect("the first row");
    assert_eq!(with_fields(page, &structures), format!("{titles}{rows}"));
}

/// A superblock has the number of its design at byte 20.
#[test]
fn the_page_has_the_number_of_every_design() {
    let page = page::text(PAGE);
    let row = page.lines().find(|line| line.starts_with("| `design` | 20 | 4 |")).expect("the row");
    for design in Design::ALL {
        let region = Region::sim(SimOptions { len: 4 << 20, ..SimOptions::default() });
        let store = Store::create_on(region, &Options::new().design(*design)).expect("a new pool");
        let mut number = [0; 4];
        store.region().read_racing(20, &mut number);
        let named = format!(" {} `{design}`", u32::from_le_bytes(number));
        assert!(row.contains(&named), "the row lacks{named}");
    }
}
