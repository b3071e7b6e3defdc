//! The interface between the library and strategies that are not part of it. A strategy in C is a table of
//! functions; this crate also makes such a table from a strategy in Rust.
//!
//! A plug-in (a shared library with strategies) may be compiled by another compiler than the library that
//! loads it. Both therefore share no Rust types, only C structures ([`layout`], declared in `nmad.h`).
//! The library reads them and calls their functions through [`Table`]. An author in Rust implements
//! [`Strategy`] and exports it with [`strategies!`]:
//!
//! ```text
//! # Cargo.toml:  [lib] crate-type = ["cdylib"]    [dependencies] nmad-plugin = "0.1"
//! NMAD_STRATEGY=target/release/libmine.so:halves nmad bench bandwidth --rails 4gbit,2.8gbit
//! ```
//!
//! This crate is below the session. It has no dependencies, so that a plug-in stays small, and must never
//! know the engine. `docs/strategy.md` shows both languages.
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

/// Version of the binary interface between library and plug-in. It changes when plug-ins must be
/// recompiled, because a structure has changed its layout or a function its meaning. Adding functions at
/// the end of [`RawStrategy`] does not change it, since each table states its size.
pub const ABI: u32 = 1;

/// Name of the function that a plug-in exports. It returns its [`PlugIn`].
pub const ENTRY: &std::ffi::CStr = c"nmad_strategies";
