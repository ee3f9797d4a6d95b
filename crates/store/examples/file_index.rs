//! An index of a folder and all below it, kept up to date: which files there are, how large, and when they
//! were changed.
//!
//! ```sh
//! cargo run --release --example file_index -- index.quipu update src   # again: writes only the changes
//! cargo run --release --example file_index -- index.quipu list src/bin/
//! ```
//!
//! It shows an ordered design: files below a folder are the keys with its prefix. A file that has not changed
//! costs one lookup, so a second run over a large tree writes next to nothing.

use quipu::{Design, Options, Store};
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [pool, command, path] = &arguments[..] else {
        return Err("usage: file_index POOL update FOLDER, or file_index POOL list PREFIX".into());
    };
    let store = Store::open_or_create(pool, &Options::new().design(Design::FLATSTORE_M).size(256 << 20))?;
    match command.to_str() {
        Some("update") => update(&store, Path::new(path))?,
        Some("list") => list(&store, path.as_bytes())?,
        _ => return Err("the command is update or list".into()),
    }
    // The next open copies the checkpoint of a pool that was closed, in place of reading every record.
    Ok(store.close()?)
}

/// What is kept of a file: its size, and when it was changed, in nanoseconds since 1970.
fn entry(size: u64, changed: i64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&size.to_le_bytes());
    bytes[8..].copy_from_slice(&changed.to_le_bytes());
    bytes
}

fn update(store: &Store, folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut client = store.client();
    let (mut files, mut written) = (0u64, 0u64);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder)? {
            let item = item?;
            let metadata = item.metadata()?;
            if metadata.is_dir() {
                folders.push(item.path());
            } else if metadata.is_file() {
                let key = item.path().into_os_string().into_vec();
                let entry = entry(metadata.len(), metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec());
                files += 1;
                if client.get(&key)?.as_deref() != Some(&entry) {
                    client.put(&key, &entry)?;
                    written += 1;
                }
            }
        }
    }

    // A guard lends keys out of the pool and keeps their place from reuse, so it goes before the deletions.
    let gone: Vec<_> = {
        let guard = client.pin();
        let below = folder.join("").into_os_string().into_vec();
        let keys = guard.prefix(&below)?.map(|pair| pair.map(|(key, _)| key.into_owned()));
        keys.filter(|key| key.as_ref().is_ok_and(|key| !exists(key))).collect::<Result<_, _>>()?
    };
    for key in &gone {
        client.delete(key)?;
    }
    println!("{files} files, {written} of them new or changed; {} are gone", gone.len());
    Ok(())
}

fn exists(key: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(key)).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

fn list(store: &Store, prefix: &[u8]) -> Result<(), Box<dyn Error>> {
    let client = store.client();
    let guard = client.pin();
    let (mut files, mut total) = (0u64, 0);
    for pair in guard.prefix(prefix)? {
        let (key, entry) = pair?;
        let size = u64::from_le_bytes(entry[..8].try_into()?);
        println!("{size:>12}  {}", key.escape_ascii());
        files += 1;
        total += size;
    }
    println!("{total:>12}  in {files} files");
    Ok(())
}
