//! Command lines that cannot be carried out.

use crate::program::*;

#[test]
fn what_cannot_be_read_names_the_flag() {
    let (_folder, path) = folder();
    for (command, flag) in [
        (&["crash", "--twin", "evil"][..], "--twin"),
        (&["linear", "--twin", "evil"], "--twin"),
        (&["linear", "--threads", "1000"], "--threads"),
        (&["isolation", "--level", "total"], "--level"),
        (&["isolation", "--twin", "evil"], "--twin"),
        (&["isolation", "--transactions", "0"], "--transactions"),
        (&["kill", path.to_str().unwrap(), "--threads", "16"], "--threads"),
    ] {
        let text = fail(command, 2);
        assert!(text.contains(flag), "{flag}: {text}");
    }
    assert!(!path.exists());
}

#[test]
fn an_unknown_design_is_named() {
    let text = fail(["crash", "--design", "abacus"], 2);
    assert!(text.contains("abacus") && text.contains("quipu"), "{text}");
    assert!(fail(["crash", "--design", "quipo"], 2).contains("did you mean quipu?"));
}
