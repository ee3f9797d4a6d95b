//! Files that are cut short, foreign or newer, and superblocks that are gone.

use super::victim::{COPY, Victim, patch_superblock, superblock_field};
use quipu::{Error, ErrorKind};
use quipu_lab::contract::{Ending, verify};
use quipu_parts::space::SpaceError;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

#[test]
fn a_file_cut_short_is_refused() {
    let victim = Victim::usual(true);
    let len = victim.bytes.len();
    for cut in [0, 1, 100, 4095, 4096, 4097, 8191, 8192, 12345, len / 2, len / 2 + 77, len - 4096, len - 1] {
        let error = victim.refused(&victim.bytes[..cut]);
        let truncated = matches!(error, Error::Space(SpaceError::Truncated { expected, found })
            if expected == len as u64 && found <= cut as u64);
        assert!(truncated || cut < 4096, "{cut} bytes: {error:?}");
        assert_ne!(error.kind(), ErrorKind::System, "{cut} bytes: {error}");
    }
    let longer = victim.damaged(|bytes| bytes.extend([7; 5000]));
    verify(&mut victim.open(&longer).unwrap(), &victim.contents);
}

#[test]
fn a_foreign_file_is_refused() {
    let victim = Victim::usual(true);
    let mut random = vec![0; 1 << 20];
    SmallRng::seed_from_u64(1).fill_bytes(&mut random);
    let text: Vec<u8> = b"Dear diary, today I met a llama.\n".iter().copied().cycle().take(100_000).collect();
    for foreign in [text, random, vec![0; 1 << 20], vec![0xff; 8192]] {
        let error = victim.refused(&foreign);
        assert!(matches!(error, Error::Space(SpaceError::NotAPool)), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::NotAPool);
    }
}

#[test]
fn a_pool_of_another_version_is_refused_by_its_number() {
    let victim = Victim::usual(true);
    let patch = |copies: &[usize], field, value: u64, len: usize| {
        let new = value.to_le_bytes();
        victim.damaged(|bytes| patch_superblock(bytes, copies, field, &new[..len]))
    };
    let newest = [usize::from(generation(&victim, 1) > generation(&victim, 0))];
    for copies in [&[0, 1][..], &newest] {
        let error = victim.refused(&patch(copies, "version", 3, 4));
        assert!(matches!(error, Error::Space(SpaceError::NewerFormat { version: 3, known: 2 })), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::NotAPool);
        let error = victim.refused(&patch(copies, "version", 1, 4));
        assert!(matches!(error, Error::Space(SpaceError::OlderFormat { version: 1, known: 2 })), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::NotAPool);
        let error = victim.refused(&patch(copies, "design", 77, 4));
        assert!(matches!(&error, Error::NewerFormat { what } if what.contains("77")), "{error:?}");
    }
}

fn generation(victim: &Victim, copy: usize) -> u64 {
    victim.word(copy * COPY + superblock_field("generation"))
}

#[test]
fn one_superblock_copy_is_enough() {
    let victim = Victim::usual(true);
    for copy in 0..2 {
        let destroyed = [
            victim.damaged(|bytes| bytes[copy * COPY..][..COPY].fill(0)),
            victim.damaged(|bytes| bytes[copy * COPY..][..COPY].fill(0xa5)),
            victim.damaged(|bytes| bytes[copy * COPY + 2000] ^= 1),
        ];
        for bytes in destroyed {
            let mut store = victim.open(&bytes).unwrap();
            verify(&mut store, &victim.contents);
            for ending in Ending::ALL {
                let mut expected = victim.contents.clone();
                let mut client = store.client();
                for (key, value) in expected.iter_mut().step_by(50) {
                    value.push(1);
                    client.put(key, value).unwrap();
                }
                drop(client);
                verify(&mut store, &expected);
                if ending == Ending::Closed {
                    store.close().unwrap();
                } else {
                    drop(store);
                }
                store = victim.reopen();
                verify(&mut store, &expected);
                let mut client = store.client();
                victim.contents.iter().for_each(|(key, value)| client.put(key, value).unwrap());
            }
        }
    }
}

#[test]
fn without_a_superblock_there_is_no_pool() {
    let victim = Victim::usual(true);
    // A third copy tells that there was one.
    let error = victim.refused(&victim.damaged(|bytes| bytes[..2 * COPY].fill(0)));
    assert!(matches!(error, Error::Space(SpaceError::Damaged { offset: 0, .. })), "{error:?}");
    let third = victim.word(superblock_field("third_copy")) as usize;
    let error = victim.refused(&victim.damaged(|bytes| {
        bytes[..2 * COPY].fill(0);
        bytes[third..third + COPY].fill(0);
    }));
    assert!(matches!(error, Error::Space(SpaceError::NotAPool)), "{error:?}");
    let error = victim.refused(&victim.damaged(|bytes| {
        bytes[2000] ^= 1;
        bytes[COPY + 2000] ^= 1;
    }));
    assert!(matches!(error, Error::Space(SpaceError::Damaged { offset: 0, .. })), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Damaged);
}

#[test]
fn a_newest_copy_that_is_lost_does_not_set_the_clock_back() {
    // Numbers are drawn from blocks; with small ones the older copy knows a ceiling far below the last number
    // drawn.
    let mut contents = quipu_lab::contract::Contents::new();
    for round in 0..2u8 {
        contents.insert(vec![round], vec![9]);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let mut options = super::victim::options().size(4 << 20);
    options.testing.clock_block = Some(64);
    let store = quipu::Store::create(&path, &options).unwrap();
    let mut client = store.client();
    for version in 0..300u64 {
        client.put(b"key", &version.to_le_bytes()).unwrap();
    }
    drop((client, store));
    let mut bytes = std::fs::read(&path).unwrap();
    let of = |copy: usize| {
        let at = copy * COPY + superblock_field("generation");
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    };
    let newest = usize::from(of(1) > of(0));
    bytes[newest * COPY..][..COPY].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let store = quipu::Store::open(&path, &options).unwrap();
    store.client().put(b"key", b"newest").unwrap();
    drop(store);
    let store = quipu::Store::open(&path, &options).unwrap();
    assert_eq!(store.client().get(b"key").unwrap().as_deref(), Some(&b"newest"[..]));
}
