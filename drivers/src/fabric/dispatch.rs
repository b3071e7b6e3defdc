//! Handles an arrived message: finds its link and acts on its content.

use super::adapter::Adapter;
use super::cache::Cache;
use super::link::Link;
use super::message::{Kind, PREFIX, Prefix};
use super::operations::Operations;
use super::read::ReadContext;
use super::sealed;
use crate::news::News;
use crate::regions::Regions;
use crate::tcp::peers::Peers;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::Event;
use nmad_wire::{Header, Kind as Content};

/// The parts of a rail that are needed to handle a message.
pub(super) struct RailParts<'a, A: Adapter> {
    pub(super) peers: &'a mut Peers<Link<A>>,
    pub(super) adapter: &'a mut A,
    pub(super) cache: &'a mut Cache<A::Region>,
    pub(super) regions: &'a Regions,
    pub(super) operations: &'a mut Operations,
    pub(super) news: &'a mut News,
    pub(super) peer_of: &'a [usize],
    pub(super) listed: &'a mut Vec<usize>,
}

/// Handles a message; false: it belongs to no open link.
///
/// # Errors
/// Its sender broke the protocol; the text is printed behind the name of the peer.
#[inline]
pub(super) fn dispatch<A: Adapter>(
    bytes: &mut [u8],
    parts: RailParts<'_, A>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<bool, (PeerId, String)> {
    let RailParts { peers, adapter, cache, regions, operations, news, peer_of, listed } = parts;
    let Some(Prefix { kind, credits, number, token }) = Prefix::decode(bytes) else { return Ok(false) };
    let index = peer_of.get(token as u32 as usize).copied().filter(|index| *index != usize::MAX);
    let Some(index) = index else { return Ok(false) };
    let peer = peers[index].id;
    let Some(link) = peers[index].link.as_deref_mut().filter(|link| link.token == token) else {
        return Ok(false);
    };
    let (prefix, rest) = bytes.split_at_mut(PREFIX);
    let rest = match &mut link.unsealer {
        None => rest,
        Some(unsealer) => sealed::open(unsealer, prefix, rest).map_err(|why| (peer, why))?,
    };
    let rest = &*rest;
    link.out.credit(credits);
    if kind == Kind::Packet {
        let is_packet = |header: Header| {
            matches!(header.kind, Content::Packet | Content::Notice) && header.len as usize == rest.len()
        };
        if !Header::decode(rest).is_ok_and(is_packet) {
            return Err((peer, "broke the protocol: an invalid packet".into()));
        }
        if link.inbox.is_empty() {
            report(Event::Arrived { from: peer, packet: rest });
            link.out.earn_credit();
        } else {
            link.inbox.keep(rest);
            link.list(index, listed);
        }
        if link.out.has_something() {
            link.list(index, listed);
        }
        return Ok(true);
    }
    link.list(index, listed);
    let Link { inbox, out, endpoint, name, .. } = link;
    let result = match kind {
        Kind::Done => {
            out.done(number, &mut news.sent);
            Ok(())
        }
        Kind::Grant => {
            let count = rest.first_chunk::<4>().map_or(0, |count| u32::from_le_bytes(*count));
            out.grant(number, count);
            Ok(())
        }
        Kind::Credit | Kind::Packet => Ok(()),
        Kind::Part => {
            let context =
                &mut ReadContext { adapter, cache, endpoint, name: *name, peer, regions, operations, out };
            inbox.part(number, rest, context)
        }
        Kind::Chunk | Kind::Whole | Kind::Parted => {
            let context =
                &mut ReadContext { adapter, cache, endpoint, name: *name, peer, regions, operations, out };
            inbox.chunk(kind, rest, context)
        }
    };
    result.map(|()| true).map_err(|why| (peer, why))
}
