//! The command `nmad`.
fn main() {}
