//! NewMadeleine.
