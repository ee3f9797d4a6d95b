//! The simulated medium.

pub mod sched;

/// The simulator behind a region.
pub struct Sim {}

impl Sim {
    pub(crate) fn write(&self, _offset: u64, _src: &[u8]) { unreachable!() }
    pub(crate) fn write_nt(&self, _offset: u64, _src: &[u8]) { unreachable!() }
    pub(crate) fn store(&self, _offset: u64, _value: u64) { unreachable!() }
    pub(crate) fn compare_exchange(&self, _offset: u64, _current: u64, _new: u64) -> Result<u64, u64> { unreachable!() }
    pub(crate) fn flush(&self, _offset: u64, _len: u64) { unreachable!() }
    pub(crate) fn fence(&self) { unreachable!() }
    pub(crate) fn note_read(&self, _offset: u64, _len: u64) { unreachable!() }
    pub(crate) fn sync(&self) { unreachable!() }
}
