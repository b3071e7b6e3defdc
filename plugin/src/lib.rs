//! Strategies outside of the library: the table of functions that a strategy in C is, and what turns one in
//! Rust into such a table.
//!
//! A strategy in a shared library is compiled by another compiler than the library that loads it, so they
//! share no Rust types, only these C structures ([`layout`], declared in `nmad.h`). The library reads and
//! calls them by [`Table`]; an author in Rust writes [`Strategy`] and names it in [`strategies!`]:
//!
//! ```text
//! # Cargo.toml:  [lib] crate-type = ["cdylib"]    [dependencies] nmad-plugin = "0.1"
//! NMAD_STRATEGY=target/release/libmine.so:halves nmad bench bandwidth --rails 4gbit,2.8gbit
//! ```
//!
//! This crate stands below the session and depends on nothing, so that a plug-in is small. It never knows the
//! engine. `docs/strategy.md` shows both languages.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod author;
#[allow(unsafe_code)]
mod forecast;
pub mod layout;
#[allow(unsafe_code)]
mod table;
#[cfg(test)]
#[allow(unsafe_code)]
mod tests;

#[doc(hidden)]
pub use author::{Exports, table_of};
pub use author::{Split, Strategy};
pub use forecast::{Forecast, Predict};
pub use layout::{PlugIn, RawStrategy, Turn, Waiting, Way};
pub use table::{Fill, Offered, Table};

/// Version of the interface between library and plug-in. It changes when a plug-in must be compiled again: a
/// structure has another layout, or a function another meaning. Functions that are added at the end of
/// [`RawStrategy`] do not change it, since a table says how long it is.
pub const ABI: u32 = 1;

/// The function that a plug-in exports, which returns its [`PlugIn`].
pub const ENTRY: &std::ffi::CStr = c"nmad_strategies";
