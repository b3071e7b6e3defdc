//! Drivers of NewMadeleine: one folder per kind of network.
