//! Threads of NewMadeleine: who turns the pump, and when.
