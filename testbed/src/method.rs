//! How this user may make hosts on this machine.

use crate::{Rate, Refused, Spec, Testbed, TestbedError};

/// By which right namespaces are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// As root, or with the capabilities to administer system and network.
    Privileged,
    /// As anybody, in a user namespace of one's own, in which programs see themselves as root.
    UserNamespace,
}

/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN` (capabilities(7)).
const NEEDED: u64 = 1 << 12 | 1 << 21;

impl Method {
    /// What this process's capabilities allow. That the kernel agrees is another matter: see [`available`].
    pub(crate) fn of_this_process() -> Method {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        if effective_capabilities(&status).is_some_and(|held| held & NEEDED == NEEDED) {
            Method::Privileged
        } else {
            Method::UserNamespace
        }
    }
}

/// Really builds a testbed of two hosts with a shaped rail, takes it down again, and says how it was done.
/// Takes some ten milliseconds.
///
/// # Errors
/// Why it could not be built, and what would allow it. Callers fall back to processes on one host.
pub fn available() -> Result<Method, Refused> {
    match Testbed::build(&Spec::new(2, vec![Rate::Limited(1_000_000_000)])) {
        Ok(testbed) => Ok(testbed.method()),
        Err(TestbedError::Refused(refused)) => Err(refused),
        Err(error) => Err(Refused {
            cause: error.to_string(),
            remedy: "this kernel lacks something that virtual hosts need".to_owned(),
        }),
    }
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_as_hexadecimal() {
        let status = "Name:\tx\nCapInh:\t0000000000000000\nCapEff:\t0000000000201000\n";
        assert_eq!(effective_capabilities(status), Some(NEEDED));
        assert_eq!(effective_capabilities("Name: x"), None);
    }
}
