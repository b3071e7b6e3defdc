//! Datatypes against a naive reference: the type map, written out one basic element at a time.

mod arrays;
mod external;
mod maps;
mod questions;
mod reference;
