//! What both libraries have: the symbols that Fortran programs call. Nearly all are written from the table
//! of functions; this folder has what the table cannot say. `crate::abi` is the binary interface of the
//! library of C below, of which nothing else is known here: this is a layer of its own between a program
//! and that library.

/// Defines a symbol under its name and under that of tools.
macro_rules! symbols {
    ($(fn $name:ident $profiled:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) {
            // SAFETY: the program passes what the standard says.
            unsafe { $body }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $profiled($($argument: $kind),*) {
            // SAFETY: the program passes what the standard says.
            unsafe { $body }
        }
    )*};
}

mod attribute;
mod compare;
mod info;
mod length;
mod place;
mod removed;
mod request;
mod size;
mod spawn;
mod text;

/// The functions of C, and the symbols that call them.
#[allow(missing_docs, non_snake_case, clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(dead_code, unused_variables)]
pub(crate) mod c {
    #[allow(unused_imports)]
    use super::{length, place, text};
    use crate::abi::{self, File, Handle};
    use std::ffi::{c_char, c_void};

    include!(concat!(env!("OUT_DIR"), "/binding.rs"));
}
