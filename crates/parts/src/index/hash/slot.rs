//! The bits of a slot, and the two buckets that they lead to.

/// Bits of the tag.
pub(super) const TAG_BITS: u32 = 16;
/// Bits of a reference.
pub(super) const REFERENCE_BITS: u32 = 48;
/// Any reference is at most this.
pub(super) const REFERENCE_MASK: u64 = (1 << REFERENCE_BITS) - 1;
/// The word of a slot without an entry.
pub(super) const EMPTY: u64 = 0;

/// The tag of a hash in a segment whose window starts at `base`.
#[inline]
pub(super) fn tag_of_hash(hash: u64, base: u32) -> u64 {
    (hash << base) >> REFERENCE_BITS
}

/// The tag in a slot.
#[inline]
pub(super) fn tag_of_word(word: u64) -> u64 {
    word >> REFERENCE_BITS
}

/// The reference in a slot.
#[inline]
pub(super) fn reference_of(word: u64) -> u64 {
    word & REFERENCE_MASK
}

/// A slot's word.
#[inline]
pub(super) fn word_of(tag: u64, reference: u64) -> u64 {
    tag << REFERENCE_BITS | reference
}

/// Spreads a tag: a product whose upper half depends on all bits of the tag.
#[inline]
fn spread(tag: u64) -> u32 {
    (tag as u32).wrapping_mul(0x9E37_79B1)
}

/// From one bucket of a tag to the other, by exclusive or. Odd, so never none.
#[inline]
pub(super) fn distance(tag: u64, bucket_mask: usize) -> usize {
    ((spread(tag) >> TAG_BITS) as usize | 1) & bucket_mask
}
