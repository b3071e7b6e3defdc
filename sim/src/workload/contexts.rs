//! The contexts of messages about files.

/// The context of requests to owners.
pub const REQUESTS: u32 = (1 << 20) + 1;

/// The context of messages about accesses to a file, by its number.
pub fn accesses(file: usize) -> u32 {
    REQUESTS + 1 + file as u32
}

/// The context of what hosts tell each other in calls that all make. It is closed when a host has died, so
/// that such a call ends, as that of MAD-MPI does.
pub fn meetings(file: usize) -> u32 {
    accesses(file) + 16
}
