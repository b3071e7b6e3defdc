//! What opening a link depends on of the network: whether it has connections, or datagrams that may be lost.
//!
//! | | connections | datagrams |
//! |---|---|---|
//! | hello | once, when the connection stands | repeated in different lengths until it is answered |
//! | bound | until a connection stands | for all of it |
//! | both at once | the lower rank refuses | the lower rank does not answer |
//! | the higher rank's proof | waits for the other connection | is said |
//! | a wrong MAC | another secret: refused | an old message: skipped |
//! | another hello of a peer | is another connection | takes the place of the one before |
//! | no room | others wait in the kernel | the oldest stranger makes room |
//!
//! Where a connection stands, the peer's system tells when the process dies, so a slow one is waited for.
//! Over datagrams the proof need not wait: a lower rank that welcomes has no attempt under way. Drivers only
//! pass on datagrams that bear a MAC of the job, so one with a wrong proof is of another conversation.

/// The kind of network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A conversation is a connection: nothing is lost, and both sides learn when it ends.
    Connections,
    /// A conversation is a pair of addresses, and each message may be lost, repeated or late. Also the
    /// lengths that are tried after the longest that the interface takes, in bytes, longest first; no path
    /// carries less than the last.
    Datagrams(&'static [usize]),
}

impl Medium {
    /// Strangers at once.
    pub(super) fn strangers_max(self) -> usize {
        match self {
            Medium::Connections => 128,
            Medium::Datagrams(_) => 256,
        }
    }

    /// Pause before another try at addresses that were all tried, in milliseconds.
    pub(super) fn rest_ms(self) -> u64 {
        match self {
            Medium::Connections => 100,
            Medium::Datagrams(_) => RETRY_MS,
        }
    }

    /// Whether messages may be lost.
    pub(super) fn loses(self) -> bool {
        matches!(self, Medium::Datagrams(_))
    }

    /// Lengths to try after the longest one.
    pub(super) fn lengths(self) -> &'static [usize] {
        match self {
            Medium::Connections => &[],
            Medium::Datagrams(lengths) => lengths,
        }
    }

    /// The length that every path carries.
    pub(super) fn shortest(self) -> usize {
        self.lengths().last().copied().unwrap_or(0)
    }
}

/// Time between two hellos over datagrams, in milliseconds.
pub const RETRY_MS: u64 = 25;
