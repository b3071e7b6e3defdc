//! The sans-IO core of NewMadeleine: collect, schedule, transfer.
