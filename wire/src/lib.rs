//! Packets and frames of NewMadeleine as bytes.
