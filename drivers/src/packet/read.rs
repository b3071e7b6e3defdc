//! Receiving: handles a frame of an open link.

use super::digest::Digest;
use super::link::Link;
use super::sys::Socket;
use crate::regions::Regions;
use crate::udp::assembly::Place;
use crate::udp::datagram::{Datagram, LEN, Signal};
use crate::udp::seal::Check;
use crate::udp::strays::{Stray, Strays};
use nmad_engine::transfer::driver::Event;

/// Handles the datagram in a frame, possibly padded, and reports an order that it completes. False: the
/// peer has closed the link.
#[inline]
pub fn read(
    link: &mut Link,
    bytes: &[u8],
    (socket, digest, strays): (&Socket, &Digest, &mut Strays),
    regions: &Regions,
    report: &mut dyn FnMut(Event<'_>),
) -> bool {
    let Some((tag, datagram)) = Datagram::decode(bytes) else {
        strays.count(Stray::Truncated);
        return true;
    };
    let data = &bytes[LEN..usize::from(datagram.len)];
    // The tag covers only as many bytes as a frame of the link may have.
    let verdict = match data.len() > link.part {
        true => Check::Forged,
        false => link.seal.check(tag.wrapping_sub(digest.of(data)), &datagram),
    };
    if verdict != Check::Right {
        refuse(verdict, bytes, link, socket, strays);
        return true;
    }
    link.has_arrived = true;
    match datagram.as_signal() {
        None => {
            let mut to = Place { peer: link.peer, regions, last: None };
            if let Err(stray) = link.assemblies.take(&datagram, data, &mut to, report) {
                strays.count(stray);
            } else if link.assemblies.is_expecting() {
                report(Event::Moved { peer: link.peer });
            }
        }
        Some(Some(Signal::Probe)) => link.signal(socket, Signal::Alive),
        Some(Some(Signal::Close)) => return false,
        Some(Some(Signal::Alive) | None) => {}
    }
    true
}

/// Handles a datagram without the link's tag. A repeated handshake message, whose answer was lost or late,
/// does not count as a stray.
#[cold]
fn refuse(verdict: Check, bytes: &[u8], link: &mut Link, socket: &Socket, strays: &mut Strays) {
    if link.seal.is_greeting(bytes) {
        return link.signal(socket, Signal::Alive);
    }
    strays.count(if verdict == Check::Repeated { Stray::Repeated } else { Stray::Forged });
}
