//! Benchmarks of NewMadeleine and of plain sockets beside it.
