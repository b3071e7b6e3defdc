//! Receiving: what a frame of an open link brings.

use super::digest::Digest;
use super::link::Link;
use super::sys::Socket;
use crate::regions::Regions;
use crate::udp::assembly::Place;
use crate::udp::datagram::{Datagram, LEN, Signal};
use crate::udp::seal::Check;
use crate::udp::strays::{Stray, Strays};
use nmad_engine::transfer::driver::Event;

/// Takes what a frame carries behind its head, perhaps padded, and reports what it completes. False: the peer
/// has closed the link.
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
    // The tag covers no more than a frame of the link carries.
    let verdict = match data.len() > link.part {
        true => Check::Forged,
        false => link.seal.check(tag.wrapping_sub(digest.of(data)), &datagram),
    };
    if verdict != Check::Right {
        refuse(verdict, bytes, link, socket, strays);
        return true;
    }
    link.heard = true;
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

/// What does not belong to the link. A greeting that comes again, because its answer was lost or late, is no
/// stranger's.
#[cold]
fn refuse(verdict: Check, bytes: &[u8], link: &mut Link, socket: &Socket, strays: &mut Strays) {
    if link.seal.is_greeting(bytes) {
        return link.signal(socket, Signal::Alive);
    }
    strays.count(if verdict == Check::Repeated { Stray::Repeated } else { Stray::Forged });
}
