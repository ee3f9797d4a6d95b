//! A customized object pool: a fixed number of objects of one size, laid out when the pool is created, for
//! the metadata of a design (section 3.4.2). A design without such metadata has none.

use super::error::SpaceError;
use super::free_list::{FreeList, FreeListKind, WORD_LEN, Words};
use super::pool_header::PoolHeader;
use super::recovery::examine;
use super::superblock::{PoolEntry, Superblock};
use quipu_medium::Region;

/// An object of an [`ObjectPool`], by number: stable for the life of the object pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// A pool of objects of one size. See the module documentation of [`super`] for the four calls.
pub struct ObjectPool {
    id: u32,
    objects: u64,
    object_size: u64,
    pub(super) list: FreeList,
}

impl ObjectPool {
    /// Compares the metadata on the medium with the superblock's description of it.
    pub(super) fn verify(
        region: &Region,
        superblock: &Superblock,
        entry: &PoolEntry,
    ) -> Result<(), SpaceError> {
        let header = PoolHeader::of_pool(superblock, entry);
        header.verify(region, entry.metadata.get(), "the header of an object pool")
    }

    /// Opens a pool that has been verified.
    pub(super) fn open(region: &Region, entry: &PoolEntry) -> ObjectPool {
        let kind = FreeListKind::from_word(entry.free_list.get()).expect("the layout has been verified");
        let list = examine(pool_words(region, entry), kind);
        let (objects, object_size) = (entry.objects.get(), entry.object_size.get());
        ObjectPool { id: entry.id.get(), objects, object_size, list }
    }

    /// Name of the pool.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Bytes of an object.
    pub fn object_size(&self) -> u64 {
        self.object_size
    }

    /// Objects in the pool.
    pub(crate) fn count(&self) -> u32 {
        self.list.count()
    }

    /// Objects that Get could return.
    pub fn free(&self) -> u32 {
        self.list.free()
    }

    /// Get: takes a free object, or `None` if there is none. Nothing is durable yet. An object that is not
    /// committed is free again after the next open.
    ///
    /// # Errors
    /// [`SpaceError::Damaged`] if the list on the medium has changed since it was verified.
    pub fn get(&self) -> Result<Option<ObjectId>, SpaceError> {
        Ok(self.list.get()?.map(ObjectId))
    }

    /// Commit: the object is owned, durably when this returns, for one flush of one line and one fence. The
    /// fence also covers bytes that the caller has written to the object and flushed. After a crash before
    /// the return, the bit may be durable without those bytes, so the object must certify itself or be fenced
    /// first.
    ///
    /// # Panics
    /// If the object was not gotten, or is committed already.
    pub fn commit(&self, object: ObjectId) {
        self.list.commit(object.0);
    }

    /// Check: whether the object is durably committed.
    pub fn check(&self, object: ObjectId) -> bool {
        self.list.check(object.0)
    }

    /// Release: gives the object back, durably when this returns. An object that was never committed costs
    /// nothing on the medium.
    ///
    /// # Panics
    /// If the object is free already: two releases would soon mean two owners.
    pub fn release(&self, object: ObjectId) {
        self.list.release(object.0);
    }

    /// The committed objects, for an owner that looks for those it does not know.
    pub fn committed(&self) -> Vec<ObjectId> {
        self.list.committed().map(ObjectId).collect()
    }

    /// First byte of an object, or `None` if there is no such object (a damaged reference).
    pub fn object_offset(&self, object: ObjectId) -> Option<u64> {
        (object.0 < self.count()).then(|| self.objects + u64::from(object.0) * self.object_size)
    }
}

fn pool_words(region: &Region, entry: &PoolEntry) -> Words {
    Words::behind(region, entry.metadata.get(), WORD_LEN, entry.count.get() as u32)
}

/// Writes the metadata of a new pool, all objects free. A fence follows.
pub(super) fn format(region: &Region, superblock: &Superblock, entry: &PoolEntry, kind: FreeListKind) {
    PoolHeader::of_pool(superblock, entry).write(region, entry.metadata.get(), kind);
    pool_words(region, entry).format(kind, |_| None);
}
