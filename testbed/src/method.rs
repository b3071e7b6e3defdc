//! How this user may make hosts on this machine.

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
    /// What this process's capabilities allow. That the kernel agrees is another matter: see
    /// [`crate::available`].
    pub(crate) fn of_this_process() -> Method {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        if effective_capabilities(&status).is_some_and(|held| held & NEEDED == NEEDED) {
            Method::Privileged
        } else {
            Method::UserNamespace
        }
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
