//! Receiving: handles a frame of an open link.

use super::digest::Digest;
use super::route::Route;
use super::sys::Socket;
use crate::datagram::assembly::Place;
use crate::datagram::header::{Datagram, LEN, Signal};
use crate::datagram::link::Link;
use crate::datagram::seal::Check;
use crate::datagram::strays::{Stray, Strays};
use crate::regions::Regions;
use nmad_engine::transfer::driver::Event;

/// Handles the datagram in a frame, possibly padded, and reports an order that it completes. False: the
/// peer has closed the link.
#[inline]
pub fn read(
    link: &mut Link<Route>,
    bytes: &[u8],
    (socket, digest, strays): (&Socket, &Digest, &mut Strays),
    regions: &Regions,
    report: &mut dyn FnMut(Event<'_>),
) -> bool {
    let Some((tag, datagram)) = Datagram::decode(bytes) else {
        strays.count(Stray::Truncated);
        return true;
    };
    if link.seal.is_encrypted() {
        return decrypt(link, &datagram, bytes, (socket, strays), regions, report);
    }
    let data = &bytes[LEN..usize::from(datagram.len)];
    // The tag covers only as many bytes as a frame of the link may have.
    let verdict = match data.len() > link.route.part {
        true => Check::Forged,
        false => link.seal.check(tag.wrapping_sub(digest.of(data)), &datagram),
    };
    if verdict != Check::Right {
        refuse(link, verdict, bytes, (socket, strays));
        return true;
    }
    take(link, &datagram, data, (socket, strays), regions, report)
}

/// Handles a datagram of an encrypted link. The frame is in the receive ring, which the kernel writes, so it
/// is copied before it is decrypted in place.
fn decrypt(
    link: &mut Link<Route>,
    datagram: &Datagram,
    bytes: &[u8],
    (socket, strays): (&Socket, &mut Strays),
    regions: &Regions,
    report: &mut dyn FnMut(Event<'_>),
) -> bool {
    let mut plain = std::mem::take(&mut link.route.plain);
    plain.clear();
    plain.extend_from_slice(&bytes[..usize::from(datagram.len)]);
    let stays_open = match link.seal.decrypt(datagram, &mut plain) {
        Ok(data) => take(link, datagram, data, (socket, strays), regions, report),
        Err(check) => {
            refuse(link, check, bytes, (socket, strays));
            true
        }
    };
    link.route.plain = plain;
    stays_open
}

/// Handles a datagram whose tag is wrong or whose number has arrived before.
#[cold]
fn refuse(link: &mut Link<Route>, check: Check, bytes: &[u8], (socket, strays): (&Socket, &mut Strays)) {
    match link.stray(check, bytes) {
        Some(stray) => strays.count(stray),
        None => link.signal(socket, Signal::Alive),
    }
}

/// Handles a datagram that the peer has sent.
#[inline]
fn take(
    link: &mut Link<Route>,
    datagram: &Datagram,
    data: &[u8],
    (socket, strays): (&Socket, &mut Strays),
    regions: &Regions,
    report: &mut dyn FnMut(Event<'_>),
) -> bool {
    link.has_arrived = true;
    match datagram.as_signal() {
        None => {
            let mut to = Place { peer: link.peer, regions, last: None };
            if let Err(stray) = link.assemblies.take(datagram, data, &mut to, report) {
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
