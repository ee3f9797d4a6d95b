//! Values that take more than a block: they fill blocks of their own (section 3.2.3, "overflow pages").
//!
//! The blocks are durable before the entry that names them, and free after it is durably clear. So an entry
//! that is set always finds its value. Blocks that no entry names belong to a write or a deletion that a
//! crash cut off; recovery frees them. Reclamation moves the entry alone.

use super::chunks::{BlockState, Page};
use super::error::{Damage, SlotError};
use super::format::{BlockKind, DESCRIPTOR_WORD, ENTRY_HEAD, Entry, EntryKind, LOG_START, OVERFLOW_HEAD};
use super::geometry::Geometry;
use super::heap::SlotHeap;
use super::offset::Offset;
use super::owner::{Owner, Reach};
use super::place::Record;

/// The body of an entry whose value fills these blocks.
pub(super) fn descriptor(len: u64, blocks: &[u64]) -> Vec<u8> {
    std::iter::once(&len).chain(blocks).flat_map(|word| word.to_le_bytes()).collect()
}

/// Reads a descriptor: the length of the value and its blocks, if these go together.
fn parse(body: &[u8], geometry: &Geometry) -> Option<(u64, Vec<u64>)> {
    let words: Vec<u64> =
        body.chunks(8).map(|word| word.try_into().map(u64::from_le_bytes)).collect::<Result<_, _>>().ok()?;
    let (len, blocks) = words.split_first()?;
    let is_whole = len.div_ceil(geometry.overflow_capacity()) == blocks.len() as u64;
    is_whole.then(|| (*len, blocks.to_vec()))
}

impl Geometry {
    /// Bytes of the descriptor of a value of this length.
    pub(super) fn descriptor_len(&self, value: u64) -> u64 {
        DESCRIPTOR_WORD * (1 + value.div_ceil(self.overflow_capacity()))
    }

    /// Bytes of the longest value that can stand beside a key of this length.
    pub(super) fn longest_value(&self, key: u64) -> u64 {
        let room = (self.block_size - LOG_START - ENTRY_HEAD).saturating_sub(key);
        let blocks = (room / DESCRIPTOR_WORD).saturating_sub(1);
        (blocks * self.overflow_capacity()).min(u64::from(u32::MAX))
    }
}

impl SlotHeap {
    /// Writes the value of a record to blocks of its own, and returns the length of the body that will name
    /// them. Nothing names them yet, and they are durable with the next fence, which is due before the length
    /// word of the entry that does.
    #[cold]
    pub(super) fn write_overflow(&self, owner: &mut Owner, record: Record<'_>) -> Result<u64, SlotError> {
        for piece in record.value.chunks(self.chunks.geometry.overflow_capacity() as usize) {
            self.write_piece(owner, piece, record.sequence)
                .map_err(|error| self.abandon_overflow(owner, error))?;
        }
        Ok(self.chunks.geometry.descriptor_len(record.value.len() as u64))
    }

    /// Fills another block. Durable with the next fence.
    fn write_piece(&self, owner: &mut Owner, piece: &[u8], sequence: u64) -> Result<(), SlotError> {
        let (block, _) = self.take_block(owner.draw(), Reach::Put, owner.node)?;
        owner.overflow.push(block);
        self.prepare(block, BlockKind::Overflow)?;
        let page = self.page_at(block, 0)?;
        page.state.set_state(BlockState::Overflow);
        self.region().store(page.at + LOG_START, sequence);
        self.region().flush(page.at + LOG_START, 8);
        self.region().write_nt(page.at + OVERFLOW_HEAD, piece);
        Ok(())
    }

    /// Frees the blocks of a value whose entry finds no place, and hands the error on.
    #[cold]
    pub(super) fn abandon_overflow(&self, owner: &mut Owner, error: SlotError) -> SlotError {
        self.free_overflow(&std::mem::take(&mut owner.overflow));
        error
    }

    /// Frees blocks of a value that nothing names any more, durably.
    pub(super) fn free_overflow(&self, blocks: &[u64]) {
        if blocks.is_empty() {
            return;
        }
        blocks.iter().for_each(|block| self.mark_free(*block));
        self.region().fence();
        // A reader of the value looks at the page of its entry, which has changed.
        self.offer(blocks.iter().copied());
    }

    /// The blocks of the value of a record that nobody else may let go; none if it stands with its key.
    pub(super) fn overflow_of(&self, offset: Offset) -> Result<Vec<u64>, SlotError> {
        if self.shape().is_some() {
            return Ok(Vec::new());
        }
        let page = self.page_of(offset)?;
        match self.read_entry(&page, offset.position())? {
            Some(entry) if entry.kind == EntryKind::Overflow => {
                Ok(self.read_descriptor(&page, offset.position(), &entry)?.1)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Length and blocks of a value, as its entry tells.
    pub(super) fn read_descriptor(
        &self,
        page: &Page<'_>,
        position: u32,
        entry: &Entry,
    ) -> Result<(u64, Vec<u64>), Damage> {
        let mut bytes = Vec::new();
        let sequence = self.append_entry(page, position, entry, 0, &mut bytes);
        let damaged = Damage { what: "the blocks of a value", offset: page.at + u64::from(position) * 8 };
        let body = bytes.get(entry.key as usize..).unwrap_or_default();
        let (len, blocks) = parse(body, &self.chunks.geometry).ok_or(damaged)?;
        let is_its_own = |block: &u64| {
            self.chunks.page(*block, 0).is_some_and(|first| {
                self.kind_of(&first) == Some(BlockKind::Overflow)
                    && self.region().load(first.at + LOG_START) == sequence
            })
        };
        if blocks.iter().all(is_its_own) { Ok((len, blocks)) } else { Err(damaged) }
    }

    /// Puts the value of an entry behind its key.
    pub(super) fn copy_overflow(&self, len: u64, blocks: &[u64], buffer: &mut Vec<u8>) {
        let mut left = len;
        for page in blocks.iter().filter_map(|block| self.chunks.page(*block, 0)) {
            let take = left.min(self.chunks.geometry.overflow_capacity());
            let start = buffer.len();
            buffer.resize(start + take as usize, 0);
            self.region().read_racing(page.at + OVERFLOW_HEAD, &mut buffer[start..]);
            left -= take;
        }
    }
}
