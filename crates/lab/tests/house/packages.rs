//! Fields and files that a package must have before it goes to a registry, where it is all that a reader
//! sees.

/// The crates (their folders) that a registry may get. All others say that they stay here.
pub const PUBLISHED: &[&str] = &["medium", "parts", "store", "crashtest"];

/// Fields that a registry shows, or that choose the files of a package.
const FIELDS: &[&str] = &[
    "description",
    "license.workspace",
    "repository.workspace",
    "rust-version.workspace",
    "documentation",
    "readme",
    "keywords",
    "categories",
    "include",
];

/// The faults of the manifest of the crate in the folder `name`; `is_there` knows the files, by their paths
/// from that folder.
pub fn check(name: &str, manifest: &str, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let package = manifest.split("\n[").next().unwrap_or_default();
    let field = |field: &str| {
        package
            .lines()
            .find_map(|line| line.strip_prefix(field)?.trim_start().strip_prefix('=').map(str::trim))
    };
    let fault = |what: String| format!("crates/{name}/Cargo.toml: {what}");
    if !PUBLISHED.contains(&name) {
        let stays = field("publish") == Some("false");
        return if stays {
            Vec::new()
        } else {
            vec![fault("`publish = false`, or list it as published".into())]
        };
    }
    let mut faults: Vec<String> = FIELDS
        .iter()
        .filter(|wanted| field(wanted).is_none())
        .map(|wanted| fault(format!("a registry shows `{wanted}`, and it is not there")))
        .collect();
    if field("include").is_some_and(|files| !files.contains("/LICENSE-*")) {
        faults.push(fault("`include` leaves the licences out".into()));
    }
    let readme = field("readme").unwrap_or_default().trim_matches('"');
    for file in [readme, "LICENSE-MIT", "LICENSE-APACHE"] {
        if !file.is_empty() && !is_there(file) {
            faults.push(fault(format!("the package would have no {file}")));
        }
    }
    faults
}

#[test]
fn a_package_that_lacks_something_is_noticed() {
    let whole: String = FIELDS.iter().map(|field| format!("{field} = \"x /LICENSE-*\"\n")).collect();
    let whole = format!("[package]\n{whole}\n[dependencies]\n");
    assert_eq!(check("store", &whole, |_| true), Vec::<String>::new());
    assert_eq!(check("store", &whole, |file| file != "LICENSE-MIT").len(), 1);
    for field in FIELDS {
        let without = whole.replace(&format!("{field} ="), "other =");
        assert_eq!(check("store", &without, |_| true).len(), 1, "{field}");
    }
    assert_eq!(check("store", &whole.replace("LICENSE", "src"), |_| true).len(), 1);
    assert_eq!(check("lab", "[package]\npublish = false\n", |_| false), Vec::<String>::new());
    assert_eq!(check("lab", "[package]\n[other]\npublish = false\n", |_| true).len(), 1);
}
