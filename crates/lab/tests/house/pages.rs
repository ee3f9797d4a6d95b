//! Pages of Markdown: their links lead to files and headings, and the paths that they name exist.

/// Faults of a page; `read` gives the text of a file by its path from the root, or an empty text for a
/// folder.
pub fn check(path: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut faults = Vec::new();
    for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        if link.contains("://") {
            continue;
        }
        let link: String = link.split_whitespace().collect();
        let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
        let target = if file.is_empty() { path.to_owned() } else { resolve(folder, file) };
        match read(&target) {
            None => faults.push(format!("{path}: a link to {target}, which does not exist")),
            Some(page) if !heading.is_empty() && !headings(&page).any(|known| known == heading) => {
                faults.push(format!("{path}: a link to {target}#{heading}: no such heading"));
            }
            Some(_) => {}
        }
    }
    let spans = text.split('`').skip(1).step_by(2);
    let named = spans.filter(|span| span.starts_with("crates/") && !span.contains([' ', '\n', '*']));
    let missing = named.filter(|name| read(name.trim_end_matches('/')).is_none());
    faults.extend(missing.map(|name| format!("{path}: `{name}` does not exist")));
    let words = text.split(|letter: char| !letter.is_alphanumeric() && !"_/.*-".contains(letter));
    let is_of_a_crate = |word: &&str| {
        let folder = word.split_once("/src/").or(word.split_once("/tests/"));
        folder.is_some_and(|(folder, _)| read(&format!("crates/{folder}")).is_some()) && !word.contains('*')
    };
    let files = words.map(|word| word.trim_end_matches(['.', '/'])).filter(is_of_a_crate);
    let missing = files.filter(|file| read(&format!("crates/{file}")).is_none());
    faults.extend(missing.map(|file| format!("{path}: crates/{file} does not exist")));
    faults
}

/// The path from the root of a link in a page of `folder`.
fn resolve(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The names by which links find the headings of a page, as the usual readers make them.
fn headings(page: &str) -> impl Iterator<Item = String> + '_ {
    page.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .collect::<String>()
            .replace(' ', "-")
    })
}

#[test]
fn a_dead_link_is_found() {
    let read = |path: &str| match path {
        "docs/a.md" => Some("# A page, `b`\n".to_owned()),
        "README.md" | "crates/store" => Some(String::new()),
        _ => None,
    };
    let check = |text: &str| check("docs/a.md", text, read).len();
    assert_eq!(
        check("[x](#a-page-b) [y](../README.md) [z](a.md#a-page-b) `crates/store/` [w](https://a.b)"),
        0
    );
    assert_eq!(check("[x](#a-page) [y](README.md) `crates/stores`"), 3);
    assert_eq!(check("| store/src/no.rs, store/src |"), 1);
}
