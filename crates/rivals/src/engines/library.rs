//! Engines that are C libraries of the system: how their functions are declared, and found when they are
//! asked for.
//!
//! So nothing here needs such a library to be built, linted or tested. A library is loaded once and never
//! unloaded: its threads may outlive every database.

/// Declares opaque types that exist behind pointers alone.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[repr(C)] pub struct $name([u8; 0]);)*
    };
}

/// Declares the table of functions, and how it is filled from a library.
macro_rules! functions {
    (
        library: $file:literal, header: $header:literal, prefix: $prefix:literal;
        $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*
    ) => {
        #[doc = concat!("The functions, each called as in `", $header, "` without the prefix `", $prefix, "`.")]
        ///
        /// # Safety
        #[doc = concat!("What `", $header, "` asks of callers: handles that are open, and as many bytes as are said.")]
        #[allow(non_snake_case)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn find(library: &libloading::Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    $(
                        // SAFETY: the type is that of the declaration in the header, and the library is never
                        // unloaded, so the copied pointer stays good.
                        $name: unsafe { *library.get(concat!($prefix, stringify!($name)).as_bytes())? },
                    )*
                })
            }
        }

        /// The functions, from the library that is loaded at the first call.
        ///
        /// # Errors
        /// Why it cannot be loaded, if it is not installed or too old.
        pub fn load() -> Result<&'static Functions, String> {
            static LOADED: std::sync::OnceLock<Result<Functions, String>> = std::sync::OnceLock::new();
            let loaded = LOADED.get_or_init(|| {
                // SAFETY: loading runs the constructors of the library and of those that it names, as in any
                // program that is linked with it.
                let library = unsafe { libloading::Library::new($file) }.map_err(|error| {
                    let reason = std::error::Error::source(&error).map(ToString::to_string);
                    reason.unwrap_or_else(|| error.to_string())
                })?;
                let functions = Functions::find(&library).map_err(|error| error.to_string());
                std::mem::forget(library);
                functions
            });
            loaded.as_ref().map_err(Clone::clone)
        }
    };
}

pub(super) use {functions, opaque};
