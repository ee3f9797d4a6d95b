//! The fields of structures on the medium, taken from the structures themselves, so that a test can hold
//! `docs/FORMAT.md` against the code.

/// Fields of a structure as (name, offset, size).
pub type Fields = Vec<(&'static str, usize, usize)>;

/// The name of a structure, and its fields in order.
pub type Table = (&'static str, Fields);

/// Size of the field that a projection leads to, without a value to apply it to.
pub const fn size_of_field<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// The [`Table`](crate::table::Table) of a structure, under its name or, with `as`, another.
#[macro_export]
macro_rules! table {
    ($structure:ident: $($field:ident),+ $(,)?) => {
        $crate::table!($structure as stringify!($structure); $($field),+)
    };
    ($structure:ident as $name:expr; $($field:ident),+ $(,)?) => {{
        const {
            let named = 0 $(+ $crate::table::size_of_field(|structure: &$structure| &structure.$field))+;
            assert!(named == size_of::<$structure>(), "every byte has a name");
        }
        (
            $name,
            vec![$((
                stringify!($field),
                std::mem::offset_of!($structure, $field),
                $crate::table::size_of_field(|structure: &$structure| &structure.$field),
            )),+],
        )
    }};
}
