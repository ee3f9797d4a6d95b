//! `docs/FORMAT.md` draws every byte; this holds its tables against the structures.

use std::collections::BTreeMap;

type Fields = Vec<(String, usize, usize)>;

/// The tables of the document, by the heading above each.
fn documented(text: &str) -> BTreeMap<String, Fields> {
    let mut tables = BTreeMap::<String, Fields>::new();
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            heading = title.trim().to_string();
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let [_, field, offset, size, ..] = cells[..]
            && let Some(name) = field.strip_prefix('`').and_then(|field| field.strip_suffix('`'))
            && let (Ok(offset), Ok(size)) = (offset.parse(), size.parse())
        {
            tables.entry(heading.clone()).or_default().push((name.to_string(), offset, size));
        }
    }
    tables
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

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md");
    std::fs::read_to_string(path).expect("docs/FORMAT.md is part of the repository")
}

#[test]
fn the_document_draws_every_field_where_the_code_has_it() {
    assert_eq!(documented(&document()), built());
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
fn a_moved_field_would_be_noticed() {
    let moved = document().replace("| `life` | 16 | 8 |", "| `life` | 24 | 8 |");
    assert_ne!(documented(&moved), built());
}
