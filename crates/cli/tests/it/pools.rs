//! Making, using, describing and checking pools.

use crate::support::*;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

#[test]
fn a_pool_keeps_what_it_is_given() {
    let (_folder, pool) = folder();
    let created = text(args(["create"], &pool, ["--size", "16M", "--zone-size", "16K", "--design", "quipu"]));
    assert!(created.contains("16 MiB in ") && created.contains("16 KiB"), "{created}");
    assert!(created.contains("After a power loss"), "{created}");

    assert_eq!(succeed(args(["put"], &pool, ["llama", "wool"])), b"");
    assert_eq!(succeed(args(["put"], &pool, ["alpaca", "finer wool"])), b"");
    assert_eq!(succeed(args(["put"], &pool, ["llama", "more wool"])), b"");
    assert_eq!(succeed(args(["get"], &pool, ["llama"])), b"more wool");
    assert_eq!(succeed(args(["del"], &pool, ["alpaca"])), b"");
    let info = &objects(&succeed(args(["info"], &pool, ["--json"])))[0];
    assert_eq!((info["records"].as_u64(), info["zone_bytes"].as_u64()), (Some(1), Some(16 << 10)), "{info}");
    assert_eq!((&info["design"], info["pool_bytes"].as_u64()), (&"quipu".into(), Some(16 << 20)));
    assert_eq!(info["closed_cleanly"], true, "every command closes the pool: {info}");
    assert!(text(args(["check"], &pool, [])).contains("is sound: 1 key, "));
}

#[test]
fn an_absent_key_has_an_exit_code_of_its_own_and_is_named() {
    let (_folder, pool) = pool();
    assert!(fail(args(["get"], &pool, ["vicuna"]), 3).contains("vicuna"));
    assert!(fail(args(["del"], &pool, ["vicuna"]), 3).contains("vicuna"));
    succeed(args(["put"], &pool, ["vicuna", ""]));
    assert_eq!(succeed(args(["get"], &pool, ["vicuna"])), b"", "an empty value is a value");
    succeed(args(["del"], &pool, ["vicuna"]));
    fail(args(["get"], &pool, ["vicuna"]), 3);
    // No key is empty, so none is absent.
    for command in [args(["get"], &pool, [""]), args(["del"], &pool, [""]), args(["put"], &pool, ["", "x"])] {
        assert!(fail(command, 2).contains("the key is empty"));
    }
}

#[test]
fn a_value_for_a_while_is_there_for_a_while() {
    let (_folder, pool) = pool();
    succeed(args(["put"], &pool, ["session", "open", "--for", "3600"]));
    succeed(args(["put"], &pool, ["flash", "!", "--for", "0"]));
    assert_eq!(text(args(["get"], &pool, ["session"])).trim_end(), "open");
    fail(args(["get"], &pool, ["flash"]), 3);
    assert!(fail(args(["put"], &pool, ["key", "value", "--for=-1"]), 2).contains("--for"));
    let before = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    succeed(args(["put"], &pool, ["lease", "", "--for", "1h30m"]));
    let lease = &objects(&succeed(args(["get"], &pool, ["lease", "--json"])))[0];
    let left = lease["expires"].as_u64().unwrap() - before;
    assert!((5_400_000..5_460_000).contains(&left), "{lease}");
}

#[test]
fn a_scan_goes_in_order_between_bounds() {
    // The one keeps keys in order always, the other for this opening.
    ["flatstore-m", "quipu"].into_iter().for_each(scans_in_order);
    let (_folder, unordered) = folder();
    succeed(args(["create"], &unordered, ["--size", "8M", "--design", "flatstore-h"]));
    let told = fail(args(["scan"], &unordered, []), 2);
    assert!(told.contains("range scans") && told.contains("quipu or flatstore-m or flatstore-ff"), "{told}");
}

fn scans_in_order(design: &str) {
    let (_folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "8M", "--design", design]));
    for (key, value) in [("llama", "wool"), ("alpaca", "finer\twool"), ("knot", ""), ("cord", "7")] {
        succeed(args(["put"], &pool, [key, value]));
    }
    assert_eq!(text(args(["scan"], &pool, [])), "alpaca\tfiner\\twool\ncord\t7\nknot\t\nllama\twool\n");
    let some = ["--from", "b", "--to", "llama", "--limit", "1"];
    assert_eq!(text(args(["scan"], &pool, some)), "cord\t7\n");
    let found = objects(&succeed(args(["scan"], &pool, ["--from", "6b", "--hex", "--json"])));
    assert_eq!(found.len(), 2);
    assert_eq!((&found[1]["key_hex"], &found[1]["value_hex"]), (&"6c6c616d61".into(), &"776f6f6c".into()));
    assert!(fail(args(["scan"], &pool, ["--from", "k", "--hex"]), 2).contains("first key"));
}

#[test]
fn large_values_go_in_and_out_and_over_to_another_pool() {
    let (folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "8M", "--zone-size", "64K"]));
    let large: Vec<u8> = (0..1_500_000u64).map(|number| ((number * number) >> 7) as u8).collect();
    assert_eq!(quipu_with_input(args(["put"], &pool, ["picture", "-"]), &large).status.code(), Some(0));
    succeed(args(["put"], &pool, ["caption", "a llama"]));
    assert!(succeed(args(["get"], &pool, ["picture"])) == large);
    assert!(text(args(["check"], &pool, [])).contains("1 large value proved"));
    let info = &objects(&succeed(args(["info"], &pool, ["--json"])))[0];
    assert_eq!(info["value_bytes"].as_u64(), Some(23 * (64 << 10)), "{info}");

    let (file, other) = (folder.path().join("export"), folder.path().join("other"));
    let file = file.to_str().expect("a path of plain letters");
    succeed(args(["export"], &pool, [file]));
    succeed(args(["create"], &other, ["--size", "8M", "--zone-size", "16K"]));
    succeed(args(["import"], &other, [file]));
    assert!(succeed(args(["get"], &other, ["picture"])) == large);
    succeed(args(["del"], &other, ["picture"]));
    let info = &objects(&succeed(args(["info"], &other, ["--json"])))[0];
    assert_eq!((info["records"].as_u64(), info["value_bytes"].as_u64()), (Some(1), Some(0)), "{info}");
}

#[test]
fn bytes_go_in_and_out_unchanged() {
    let (_folder, pool) = pool();
    let all: Vec<u8> = (0..=255).collect();
    let output = quipu_with_input(args(["put"], &pool, ["bytes", "-"]), &all);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(succeed(args(["get"], &pool, ["bytes"])), all);

    // Hexadecimal out, and in again under a key that is no text.
    let hex: String = all.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = "6279746573";
    assert_eq!(text(args(["get"], &pool, [key, "--hex"])), hex);
    let output =
        quipu_with_input(args(["put"], &pool, ["ff00", "-", "--hex"]), format!("{hex}\n").as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(args(["get"], &pool, ["FF00", "--hex"])), hex);

    // A key need not be valid text to be an argument either.
    let odd = std::ffi::OsStr::from_bytes(b"\xfe-key");
    let put = Command::new(env!("CARGO_BIN_EXE_quipu")).arg("put").arg(&pool).arg(odd).arg("v").status();
    assert!(put.unwrap().success());
    assert_eq!(text(args(["get"], &pool, ["fe2d6b6579", "--hex"])), "76");
    assert!(fail(args(["get"], &pool, ["6g", "--hex"]), 2).contains("hexadecimal"));
}

#[test]
fn words_that_look_like_flags_can_be_stored() {
    let (_folder, pool) = pool();
    succeed(args(["put"], &pool, ["--", "-k", "--value"]));
    assert_eq!(succeed(args(["get"], &pool, ["--", "-k"])), b"--value");
}

#[test]
fn objects_have_the_documented_names() {
    let (folder, pool) = pool();
    let info = &objects(&succeed(args(["info"], &pool, ["--json"])))[0];
    let expected = "pool design medium durability survives pool_bytes zone_bytes zones free_zones records record_bytes \
                    garbage_bytes utilization settings index_bytes index_pm_bytes longest_key longest_value closed_cleanly \
                    from_checkpoint value_bytes goal_zones owed_zones free_bytes usable_bytes reserved_bytes live_bytes \
                    wanted_bytes garbage_is_known tables levels parts spills";
    assert_eq!(names(info), words(expected));
    let other = folder.path().join("other");
    let created = &objects(&succeed(args(["create"], &other, ["--size", "4M", "--json"])))[0];
    assert_eq!(names(created), words(expected));
    let put = &objects(&succeed(args(["put"], &pool, ["llama", "wool", "--json"])))[0];
    assert_eq!((names(put), &put["value_bytes"]), (words("pool key value_bytes"), &4.into()));
    assert_eq!(text(args(["get"], &pool, ["llama", "--json"])), "{\"key\":\"llama\",\"value\":\"wool\"}\n");
    let hex = text(args(["get"], &pool, ["6c6c616d61", "--hex", "--json"]));
    assert_eq!(hex, "{\"key_hex\":\"6c6c616d61\",\"value_hex\":\"776f6f6c\"}\n");
    let del = &objects(&succeed(args(["del"], &pool, ["6c6c616d61", "--hex", "--json"])))[0];
    assert_eq!((names(del), &del["key_hex"]), (words("pool key_hex"), &"6c6c616d61".into()));
    assert_eq!(names(&info["survives"]), words("process_crash os_crash power_loss evidence"));

    let check = &objects(&succeed(args(["check"], &pool, ["--json"])))[0];
    assert_eq!(
        names(check),
        words("pool sound segments records keys values free_zones damage lost lost_keys torn unproved")
    );
    assert_eq!(check["sound"], true);

    let probe = &objects(&succeed(args(["probe"], folder.path(), ["--json"])))[0];
    let expected =
        "path filesystem mount_point free_bytes map_sync medium flush node device durability survives";
    assert_eq!(names(probe), words(expected));
    assert!(text(args(["probe"], folder.path(), [])).contains("A pool here is of medium"));
}

#[test]
fn designs_are_listed_for_people_and_programs() {
    assert!(text(["designs"]).contains("quipu: "));
    for design in objects(&succeed(["designs", "--json"])) {
        assert_eq!(names(&design), words("name paper ordered tables parts switches settings limits"));
        for (name, setting) in design["settings"].as_object().unwrap() {
            assert_eq!(names(setting), words("default values help kept"), "{name}");
        }
    }
    assert!(text(["designs"]).contains("    offset-map=dram\n"));
}

#[test]
fn settings_are_chosen_once_and_remembered() {
    let (_folder, pool) = folder();
    let chosen = ["--set", "offset-map=pm", "--set", "form=fixed:5:4", "--set", "cceh=paper"];
    succeed(args(["create", "--size", "4M", "--design", "viper"], &pool, chosen));
    succeed(args(["put"], &pool, ["llama", "wool"]));
    assert_eq!(succeed(args(["get"], &pool, ["llama"])), b"wool");
    succeed(args(["check"], &pool, []));
    let info = &objects(&succeed(args(["info"], &pool, ["--json"])))[0];
    let settings = [("offset-map", "pm"), ("form", "fixed:5:4"), ("cceh", "paper"), ("page-size", "4096")];
    for (name, value) in settings {
        assert_eq!(info["settings"][name].as_str(), Some(value));
    }
    assert!(info["index_pm_bytes"].as_u64().unwrap() > 0);
    let shown = text(args(["info"], &pool, []));
    assert!(shown.contains("  offset-map=pm\n") && shown.contains("of zones"), "{shown}");
}
