//! The machine that this process runs on.

/// Returns the host name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
