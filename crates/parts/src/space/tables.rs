//! The fields of every structure on the medium, taken from the structures themselves, so that a test can hold the
//! description of the format against the code.

use super::pool_header::{PoolHeader, ZoneEntry};
use super::superblock::{CheckpointEntry, ExtentEntry, PoolEntry, Superblock};

/// A structure on the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of the structure.
    pub name: &'static str,
    /// Bytes of the structure.
    pub size: usize,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

/// A field of a [`Table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: usize,
    /// Length in bytes.
    pub size: usize,
}

/// Size of the field that a projection leads to, without a value to apply it to.
const fn size_of_field<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! table {
    ($name:ident: $($field:ident),+ $(,)?) => {
        Table {
            name: stringify!($name),
            size: size_of::<$name>(),
            fields: vec![$(Field {
                name: stringify!($field),
                offset: std::mem::offset_of!($name, $field),
                size: size_of_field(|value: &$name| &value.$field),
            }),+],
        }
    };
}

/// All structures on the medium that this module owns.
pub fn format_tables() -> Vec<Table> {
    vec![
        table!(Superblock: checksum, magic, version, design, generation, compatible, read_only_compatible, incompatible,
            pool_len, zone_size, zone_count, zone_free_list, state, reserved_a, clock_ceiling, run, boot_id, secret,
            settings, extent_count, pool_count, zones_digest, checkpoint, marked_from, headers_digest, reserved_b, extents, pools, reserved_c),
        table!(CheckpointEntry: run, len, check, first_zone, reserved),
        table!(ExtentEntry: start, len, zones, first_zone, zone_count, node, reserved),
        table!(PoolEntry: metadata, objects, object_size, count, id, free_list, reserved),
        table!(PoolHeader: checksum, objects, object_size, count, id, kind, free_list, node, reserved_a, head,
            reserved_b),
        table!(ZoneEntry: index, location),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_leave_no_byte_unnamed() {
        for table in format_tables() {
            let mut end = 0;
            for field in &table.fields {
                assert_eq!(field.offset, end, "{} before {}", table.name, field.name);
                end += field.size;
            }
            assert_eq!(end, table.size, "{}", table.name);
        }
    }
}
