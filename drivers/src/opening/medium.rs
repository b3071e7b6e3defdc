//! Differences between networks with connections and networks with datagrams, for opening links.
//!
//! | | connections | datagrams |
//! |---|---|---|
//! | hello | once, after the connection is set up | repeated in different lengths until it is answered |
//! | time limit | until a connection is established, and for the hello | for the whole handshake |
//! | both sides begin at once | the lower rank refuses | the lower rank does not answer |
//! | the higher rank's proof | waits for the end of the other connection | is sent at once |
//! | a wrong MAC | another secret: refused | an old message: ignored |
//! | a second hello of a peer | is another connection | replaces the first one |
//! | no free place | others wait in the kernel | the oldest unproved sender is dropped |
//!
//! If a connection is established, the peer's system reports when the process dies, so the driver waits for
//! a slow process. Over datagrams the proof need not wait: a lower rank that sends a welcome has no attempt
//! under way. Drivers only pass on datagrams that have a MAC of the job, so one with a wrong proof is of
//! another conversation.

/// The kind of network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A conversation is a connection: messages are not lost, and both sides are notified of its end.
    Connections,
    /// A conversation is a pair of addresses, and each message may be lost, repeated or late. The list has
    /// the lengths to try after the longest one that the interface takes, in bytes, longest first; every
    /// path carries the last one.
    Datagrams(&'static [usize]),
}

impl Medium {
    /// Most strangers at once.
    pub(super) fn strangers_max(self) -> usize {
        match self {
            Medium::Connections => 128,
            Medium::Datagrams(_) => 256,
        }
    }

    /// Pause before another round over all addresses, in milliseconds.
    pub(super) fn rest_ms(self) -> u64 {
        match self {
            Medium::Connections => 100,
            Medium::Datagrams(_) => RETRY_MS,
        }
    }

    /// Returns whether messages may be lost.
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
