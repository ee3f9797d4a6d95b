//! Pools that have lived, with a map of their places.

use super::place::Place;
use quipu::internals::{CcehSettings, NodePlace, OffsetMap, RecordForm, SlotSettings};
use quipu::{Design, Options, Store, WriteBatch};
use quipu_medium::{Pages, Region};
use quipu_parts::heap::{Reference, SizedReference};
use quipu_parts::space::{Space, ZoneId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// Bytes of a pool and of a zone.
pub(super) const LEN: u64 = 768 << 10;
const ZONE: u64 = 16 << 10;
/// Keys, and how often all of them are gone through.
const KEYS: u64 = 260;
const ROUNDS: u64 = 4;
/// Bytes of a value that stands in its record, at most.
const LONGEST: usize = 300;
/// Bytes of a superblock copy.
const COPY: u64 = 4096;
const LINE: usize = 64;

/// See the module's documentation.
pub struct Ground {
    name: String,
    design: Design,
    /// The options that its pool is opened with.
    pub(super) options: Options,
    is_closed: bool,
    /// The contents of the pool.
    pub(super) truth: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Every key that it ever had, and every value of each.
    pub(super) keys: Vec<Vec<u8>>,
    values: Vec<Vec<Vec<u8>>>,
    /// The pool as the run left it, and as it was in the middle of the run.
    pub(super) image: Vec<u8>,
    pub(super) earlier: Vec<u8>,
    /// Stretches of each place, in order of places.
    pub(super) places: BTreeMap<Place, Vec<Range<usize>>>,
    /// Numbers of keys by their first eight bytes.
    prefixes: HashMap<[u8; 8], usize>,
    /// The same by words of values, and whether they are longer than those beside their keys.
    pieces: HashMap<[u8; 8], (usize, bool)>,
    /// Where frames are, and chunks of memtables: records that count together.
    frames: Vec<Range<usize>>,
    zone_base: u64,
}

/// A one-to-one mix, so that keys and values are words that nothing else in a pool is.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn words(seed: u64, len: usize) -> Vec<u8> {
    (1..).flat_map(|n: u64| mix(seed.wrapping_add(n)).to_le_bytes()).take(len).collect()
}

fn word_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// The keys and values of a ground.
struct Script {
    form: RecordForm,
    large: Option<[usize; 2]>,
}

impl Script {
    fn key(&self, number: u64) -> Vec<u8> {
        let len = match self.form {
            RecordForm::Fixed { key, .. } => key as usize,
            RecordForm::Variable => [8, 13, 24, 40][(number % 4) as usize],
        };
        words(number << 20, len)
    }

    fn value(&self, number: u64, version: u64) -> Vec<u8> {
        let len = match (self.form, self.large) {
            (RecordForm::Fixed { value, .. }, _) => value as usize,
            (_, Some(large)) if number % 64 == 5 => large[(version % 2) as usize],
            _ => [12, 40, 100, 300, 0][((number / 4 + version) % 5) as usize],
        };
        words(1 << 60 | number << 20 | version << 12, len)
    }
}

impl Ground {
    /// The grounds of a design: closed and not, in each of its forms.
    pub fn all(design: Design) -> Vec<Ground> {
        let mut grounds = Vec::new();
        for closed in [true, false] {
            for (form, nodes) in forms(design) {
                grounds.push(Ground::new(design, *form, *nodes, closed));
            }
        }
        grounds
    }

    fn new(design: Design, form: RecordForm, nodes: NodePlace, closed: bool) -> Ground {
        let has_blocks = design.can().has_blocks;
        let mut options = Options::new().design(design).zone_size(ZONE).cleaner(false);
        options = options.recovery_threads(1).verify_reads(true);
        options.slots = SlotSettings { form, pages_per_block: 1, alignment_shift: 0, ..options.slots };
        let shape = CcehSettings { bucket_bits: 2, ..CcehSettings::paper() };
        options.offset_map = OffsetMap { nodes, shape };
        options.testing.tiny_index = true;
        let large = match (has_blocks, design.can().large_values) {
            (true, _) => Some([2500, 9000]),
            (false, true) => Some([6000, 30_000]),
            (false, false) => None,
        };
        let script = Script { form, large };
        let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
        let (truth, earlier) = live(&region, &options, &script, closed);
        let image = bytes_of(&region);
        let ending = if closed { "closed" } else { "unclosed" };
        let form = match (design, form, nodes) {
            (Design::VIPER, RecordForm::Fixed { .. }, NodePlace::Pm) => " slots, index in pool",
            (Design::VIPER, RecordForm::Fixed { .. }, _) => " slots",
            (Design::VIPER, _, NodePlace::Pm) => " logs, index in pool",
            (Design::VIPER, ..) => " logs",
            _ => "",
        };
        let keys: Vec<Vec<u8>> = (0..KEYS).map(|number| script.key(number)).collect();
        let prefix = |bytes: &[u8]| bytes[..8].try_into().expect("eight bytes");
        let prefixes = keys.iter().enumerate().map(|(i, key)| (prefix(key), i)).collect();
        let values: Vec<Vec<Vec<u8>>> = (0..KEYS)
            .map(|number| (0..ROUNDS).map(|version| script.value(number, version)).collect())
            .collect();
        let mut pieces = HashMap::new();
        for (number, values) in values.iter().enumerate() {
            for value in values {
                let words = value.chunks_exact(8);
                pieces.extend(words.map(|word| (prefix(word), (number, value.len() > LONGEST))));
            }
        }
        let name = format!("{design}{form} {ending}");
        let (space, _) = Space::examine(region).expect("a pool");
        let zone_base = space.zone_offset(ZoneId(0));
        let mut ground = Ground {
            name,
            design,
            options,
            is_closed: closed,
            truth,
            keys,
            values,
            image,
            earlier,
            places: BTreeMap::new(),
            prefixes,
            pieces,
            frames: Vec::new(),
            zone_base,
        };
        ground.map(&space);
        ground
    }

    /// Design, form and ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its design.
    pub fn design(&self) -> Design {
        self.design
    }

    /// The places in these bytes.
    pub(super) fn places_in(&self, range: &Range<usize>) -> BTreeSet<Place> {
        let meets = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        let places = self.places.iter();
        places.filter(|(_, stretches)| stretches.iter().any(meets)).map(|(place, _)| *place).collect()
    }

    /// The stretches of a place.
    fn of(&self, place: Place) -> impl Iterator<Item = &Range<usize>> {
        self.places.get(&place).into_iter().flatten()
    }

    /// Keys whose first bytes stand at a multiple of eight in these bytes of an image, with the place.
    fn keys_in<'g>(
        &'g self,
        image: &'g [u8],
        range: Range<usize>,
    ) -> impl Iterator<Item = (usize, usize)> + 'g {
        let range = range.start / 8..range.end.min(image.len()).div_ceil(8);
        let words = range.map(|word| (word * 8, &image[word * 8..word * 8 + 8]));
        words.filter_map(|(at, word)| self.prefixes.get(word).map(|key| (at, *key)))
    }

    /// The keys whose records, values or entries of an index are struck, if these bytes of the image become
    /// others.
    pub(super) fn own_keys(&self, after: &[u8], range: Range<usize>, is_old: bool) -> BTreeSet<usize> {
        let mut own = BTreeSet::new();
        let struck = self.places_in(&range);
        if is_old && (struck.contains(&Place::Index) || struck.contains(&Place::IndexHeader)) {
            // An older page of an index proves itself, and leads to no entry that came later, wherever that
            // lies.
            for at in self.of(Place::Index).flat_map(|all| all.clone().step_by(8)) {
                let [entry, before] = [&self.image, &self.earlier].map(|image| &image[at..at + 8]);
                if entry != before {
                    own.extend(self.named(word_of(entry)));
                }
            }
        }
        // A header of an earlier life proves itself. Only a pool that was closed knows which it had.
        let may_be_older = is_old && !self.is_closed;
        let heads = self.of(Place::ZoneHeader).filter(|head| may_be_older && range.contains(&head.start));
        let zones = heads.map(|head| head.start..head.start + ZONE as usize);
        let meets = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        let frames = self.frames.iter().filter(|frame| meets(frame)).cloned();
        // A length word of zero is the end of its page's log.
        let ends_log = |word: &&Range<usize>| meets(word) && after[(*word).clone()] == [0; 8];
        let bits = self.of(Place::SlotBits).filter(|bits| meets(bits));
        let heads = self.of(Place::LengthWord).filter(ends_log).chain(bits);
        let pages = heads.map(|head| head.start..head.start.next_multiple_of(4096));
        for lost in zones.chain(frames).chain(pages) {
            own.extend(self.keys_in(&self.image, lost).map(|(_, key)| key));
        }
        for image in [&self.image[..], after] {
            let around = range.start.saturating_sub(LONGEST + 64)..range.end + 48;
            own.extend(
                self.keys_in(image, around)
                    .filter(|(at, key)| meets(&self.extent(image, *at, *key)))
                    .map(|(_, key)| key),
            );
            // A value that is not beside its key: behind the header of its zone, its page or its part.
            let wide = range.start.saturating_sub(72) / 8 * 8..(range.end + 72).min(image.len());
            for (at, word) in (wide.start..).step_by(8).zip(image[wide].chunks_exact(8)) {
                let Some((key, is_long)) = self.pieces.get(word) else { continue };
                if *is_long || meets(&(at.saturating_sub(16)..at + 8)) {
                    own.insert(*key);
                }
            }
            // An entry of an index is two words, or one.
            let entry = range.start / 16 * 16..range.end.next_multiple_of(16).min(image.len());
            for word in image[entry].chunks_exact(8) {
                own.extend(self.named(word_of(word)));
            }
        }
        own
    }

    /// The bytes of the record whose key stands here.
    fn extent(&self, image: &[u8], at: usize, key: usize) -> Range<usize> {
        let len = self.keys[key].len();
        let head = match self.options.slots.form {
            _ if !self.design.can().has_blocks => {
                let has_len = at >= 24 && image[at - 6..at - 4] == (len as u16).to_le_bytes();
                if has_len { 24 } else { 32 }
            }
            RecordForm::Fixed { .. } => 0,
            RecordForm::Variable => 16,
        };
        // The head of a large value is not its bytes.
        let log_value = match self.design.can().has_blocks {
            false if at >= head => {
                u32::from_le_bytes(image[at - head + 20..at - head + 24].try_into().expect("four"))
            }
            _ => 0,
        };
        let follows = |value: &&Vec<u8>| image[at + len..].starts_with(&value[..value.len().min(8)]);
        let value = self.values[key].iter().filter(follows).map(Vec::len).max().unwrap_or(log_value as usize);
        at.saturating_sub(head)..at + (len + value.min(LONGEST)).next_multiple_of(8) + 8
    }

    /// The key whose record a word names, read as a reference of an index over logs.
    fn named(&self, word: u64) -> Option<usize> {
        let shift = ZONE.trailing_zeros();
        // A bucket's word has the reference where it is, those of the other indexes count in units of eight
        // bytes.
        let word = SizedReference::from_word(word).reference().with_tag(0).word();
        [word, word >> 3].into_iter().map(Reference::from_word).find_map(|reference| {
            let start = self.zone_base + u64::from(reference.zone(shift).0) * ZONE + reference.offset(shift);
            if start + 64 > LEN {
                return None;
            }
            let start = start as usize;
            self.keys_in(&self.image, start + 24..start + 40).next().map(|(_, key)| key)
        })
    }

    fn add(&mut self, place: Place, range: Range<usize>) {
        if !range.is_empty() {
            self.places.entry(place).or_default().push(range);
        }
    }

    fn map(&mut self, space: &Space) {
        self.add(Place::Superblock, 0..2 * COPY as usize);
        let table = space.superblock().extents()[0].start.get() as usize;
        self.add(Place::ZoneTable, table..table + 128 + space.zone_count() as usize * 16);
        let committed: BTreeSet<_> = space.committed_zones().into_iter().collect();
        if self.design == Design::XP {
            self.add(Place::Object, table + 128 + space.zone_count() as usize * 16..self.zone_base as usize);
        }
        for zone in (0..space.zone_count()).map(ZoneId) {
            let start = space.zone_offset(zone) as usize;
            let all = start..start + ZONE as usize;
            let magic: [u8; 4] = self.image[start + 8..start + 12].try_into().expect("four bytes");
            match (&magic, committed.contains(&zone)) {
                (b"QSEG", true) => self.map_segment(all),
                (b"QVAL", true) => {
                    self.add(Place::ZoneHeader, start..start + 40);
                    self.add(Place::LargeValue, start + 64..all.end);
                }
                (b"QVCH", true) => self.map_chunk(all),
                (b"QMTZ", true) => self.map_memtable(all),
                (b"QCEH" | b"QBKT" | b"QBKL" | b"QFFT", true) => {
                    self.add(Place::IndexHeader, start..start + 64);
                    self.add(Place::Index, start + 64..all.end);
                }
                (b"QCKP", false) => self.add(Place::Checkpoint, all),
                _ => self.add(Place::Free, all),
            }
        }
    }

    fn word(&self, at: usize) -> u64 {
        word_of(&self.image[at..at + 8])
    }

    fn map_segment(&mut self, zone: Range<usize>) {
        self.add(Place::ZoneHeader, zone.start..zone.start + 40);
        self.add(Place::EndMark, zone.start + 40..zone.start + 48);
        let is_open = self.word(zone.start + 40) == 0;
        // A file of Nlog, whose records have their lines for themselves.
        let is_shared = self.word(zone.start + 48) != 0;
        if is_shared {
            self.add(Place::ZoneHeader, zone.start + 48..zone.start + 64);
        }
        let mut at = zone.start + 64;
        while at + 24 <= zone.end && self.image[at + 16] != 0 {
            let flags = self.image[at + 17];
            let key = u16::from_le_bytes([self.image[at + 18], self.image[at + 19]]) as usize;
            let value = (self.word(at + 16) >> 32) as usize;
            let len = (24 + 8 * usize::from(flags & 1) + key + value).next_multiple_of(8);
            let is_frame = self.image[at + 16] == 3;
            if is_frame {
                self.frames.push(at..(at + len).min(zone.end));
            }
            let len = if is_frame { 24 } else { len };
            let key_at = at + 24 + 8 * usize::from(flags & 1) + 8 * usize::from(flags >> 1 & 1);
            let end = (at + len).min(zone.end);
            let is_live =
                self.truth.get(&self.image[key_at..(key_at + key).min(zone.end)]).is_some_and(|value| {
                    let found = &self.image[(key_at + key).min(end)..end];
                    // A head has the length of its value first.
                    self.image[at + 16] == 4 || found.starts_with(value)
                });
            let place = match (is_live, is_open) {
                (_, true) => Place::OpenRecord,
                (true, false) => Place::LiveRecord,
                (false, false) => Place::DeadRecord,
            };
            self.add(place, at..end);
            at += if is_shared { len.next_multiple_of(LINE) } else { len };
        }
        self.add(Place::Free, at.min(zone.end)..zone.end);
    }

    fn map_memtable(&mut self, zone: Range<usize>) {
        self.add(Place::ZoneHeader, zone.start..zone.start + LINE);
        // The object of its memtable has its number, and an end mark in the second line.
        let number = self.word(zone.start + 16);
        let objects = (0..self.zone_base as usize).step_by(LINE);
        let is_own = |at: &usize| self.image[at + 8..at + 12] == *b"QMEM" && self.word(at + 24) == number;
        let is_open = objects.filter(is_own).all(|at| self.word(at + LINE) == 0);
        // Behind the last chunk there may be some of an earlier life of the zone. Their
        // numbers are lower, and those of a memtable at most a block of numbers lower than its own.
        let (mut at, mut last) = (zone.start + LINE, number.saturating_sub(256));
        while at < zone.end {
            let (first, len) = (self.word(at + 8), (self.word(at + 32) >> 32) as usize);
            if len == 0 || first <= last {
                break;
            }
            last = first;
            let end = (at + len).next_multiple_of(LINE);
            self.frames.push(at..end);
            self.add(if is_open { Place::OpenRecord } else { Place::LiveRecord }, at..end);
            at = end;
        }
        self.add(Place::Free, at.min(zone.end)..zone.end);
    }

    fn map_chunk(&mut self, zone: Range<usize>) {
        const PAGE: usize = 4096;
        self.add(Place::ChunkHeader, zone.start..zone.start + 64);
        let mut page = (zone.start + 64).next_multiple_of(PAGE);
        let is_fixed = matches!(self.options.slots.form, RecordForm::Fixed { .. });
        while page + PAGE <= zone.end {
            self.add(Place::PageHeader, page..page + 8);
            let found: Vec<_> = self.keys_in(&self.image, page + 8..page + PAGE).collect();
            let mut last = if is_fixed { page + 16 } else { page + 8 };
            if is_fixed {
                self.add(Place::SlotBits, page + 8..page + 16);
            }
            for (at, key) in found {
                let (key, len) = (self.keys[key].clone(), self.keys[key].len());
                let value_len = self.truth.get(&key).map_or(0, Vec::len).min(page + PAGE - at - len);
                let is_live = self.truth.get(&key).is_some_and(|value| {
                    self.image[at + len..page + PAGE].starts_with(&value[..value.len().min(value_len)])
                });
                let head = if is_fixed { 0 } else { 16 };
                self.add(Place::PageRest, last..at - head);
                if !is_fixed {
                    self.add(Place::LengthWord, at - 16..at - 8);
                }
                last = if is_live { at + len + value_len } else { at + len };
                let place = if is_live { Place::PageRecord } else { Place::PageRest };
                self.add(place, at - head.min(8)..last);
            }
            self.add(Place::PageRest, last..page + PAGE);
            page += PAGE;
        }
    }
}

/// Forms of records, and memories of the index.
fn forms(design: Design) -> &'static [(RecordForm, NodePlace)] {
    const SLOTS: RecordForm = RecordForm::Fixed { key: 8, value: 120 };
    match design {
        Design::VIPER => &[
            (RecordForm::Variable, NodePlace::Dram),
            (SLOTS, NodePlace::Dram),
            (RecordForm::Variable, NodePlace::Pm),
        ],
        _ => &[(RecordForm::Variable, NodePlace::Dram)],
    }
}

pub(super) fn bytes_of(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; LEN as usize];
    region.read_racing(0, &mut bytes);
    bytes
}

/// Works on a new pool, and leaves it closed or not. Returns what it holds, and its bytes in the middle.
fn live(
    region: &Region,
    options: &Options,
    script: &Script,
    closed: bool,
) -> (BTreeMap<Vec<u8>, Vec<u8>>, Vec<u8>) {
    let mut truth = BTreeMap::new();
    let store = Store::create_on(region.clone(), options).expect("a new pool");
    let batches = store.design().can().batches;
    let mut earlier = Vec::new();
    for version in 0..ROUNDS {
        let mut client = store.client();
        for number in
            (0..KEYS).filter(|number| version == 0 || !mix(number + version * 1000).is_multiple_of(3))
        {
            let (key, value) = (script.key(number), script.value(number, version));
            if version > 0 && mix(number * 7 + version).is_multiple_of(5) {
                client.delete(&key).expect("a delete");
                truth.remove(&key);
            } else if batches && number % 16 == 9 && value.len() < 2000 {
                let other = script.key(number - 1);
                let mut batch = WriteBatch::new();
                batch.put(&key, &value).delete(&other);
                client.write(&batch).expect("room");
                truth.remove(&other);
                truth.insert(key, value);
            } else {
                client.put(&key, &value).expect("room");
                truth.insert(key, value);
            }
        }
        drop(client);
        if version == 1 {
            earlier = bytes_of(region);
        }
        if version > 0 && version + 1 < ROUNDS {
            store.compact().expect("room");
        }
    }
    if closed {
        store.close().expect("closed");
    }
    (truth, earlier)
}
