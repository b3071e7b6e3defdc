//! The machine that this process runs on.

/// The name that the system gives it.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
