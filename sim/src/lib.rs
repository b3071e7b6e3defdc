//! The deterministic world in which the engine runs in virtual time.
