//! A link to one peer over a fabric: an endpoint, the send queue, and the arrivals.
//!
//! The connection on which the link was opened stays open: it carries nothing any more, but its end reports
//! the death of the peer, also while nothing is sent.

use super::access::Accesses;
use super::adapter::Adapter;
use super::read::Inbox;
use super::write::Outbox;
use crate::tcp::peers::Remote;
use nmad_seal::Unsealer;
use rustix::fd::OwnedFd;

/// An open link.
pub(crate) struct Link<A: Adapter> {
    /// The endpoint; it must end before the memory that it uses.
    pub(crate) endpoint: A::Endpoint,
    /// Number of the peer's rail.
    pub(crate) remote: u8,
    /// The adapter's name for the endpoint.
    pub(crate) name: u32,
    /// The token with which the peer's messages of this link begin.
    pub(crate) token: u64,
    /// The connection on which the link was opened.
    pub(crate) socket: OwnedFd,
    /// The name of the cipher, if the link is encrypted.
    pub(crate) cipher: Option<&'static str>,
    /// Decrypts the peer's messages, if the link is encrypted.
    pub(crate) unsealer: Option<Box<Unsealer>>,
    /// Queued orders, and those that the peer has not finished with.
    pub(crate) out: Outbox<A::Region>,
    /// Accesses to the peer's memory.
    pub(crate) accesses: Accesses<A::Region>,
    /// Incomplete arrivals.
    pub(crate) inbox: Inbox<A::Region>,
    /// The link is in the list of those that have something to post.
    pub(crate) is_listed: bool,
    /// The last post had no room for everything.
    pub(crate) is_stuck: bool,
    /// The connection has ended; the link ends at this time, in milliseconds, after remaining arrivals.
    pub(crate) ends_ms: Option<u64>,
}

impl<A: Adapter> Link<A> {
    /// Adds the link to the list of those that have something to post or report.
    #[inline]
    pub(super) fn list(&mut self, index: usize, listed: &mut Vec<usize>) {
        if !self.is_listed {
            self.is_listed = true;
            listed.push(index);
        }
    }
}

impl<A: Adapter> Remote for Link<A> {
    fn remote(&self) -> u8 {
        self.remote
    }
}
