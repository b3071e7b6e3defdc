//! The command nmad.
