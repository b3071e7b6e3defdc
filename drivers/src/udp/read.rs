//! Receiving: one read from a peer's socket, which brings a datagram or several that the kernel has joined.

use super::assembly::Place;
use super::datagram::{Datagram, LEN, Signal};
use super::link::Link;
use super::seal::{AT_ONCE, Check};
use super::strays::{Stray, Strays};
use nmad_engine::transfer::driver::Event;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};

/// The peer has closed the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// Reads once and reports what is complete. False: there was nothing.
///
/// # Errors
/// The peer has closed the link.
#[inline]
pub fn read(
    link: &mut Link,
    scratch: &mut [u8],
    place: &mut Place<'_>,
    strays: &mut Strays,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<bool, Closed> {
    let got = match net::recv(&link.socket, &mut *scratch, RecvFlags::empty()) {
        Ok((_, got)) => got,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
        // The error is about an earlier datagram of ours; datagrams that have come are behind it.
        Err(e) => {
            link.refused(e);
            return Ok(true);
        }
    };
    let bytes = &scratch[..got];
    match Datagram::decode(bytes) {
        Some((tag, datagram)) if usize::from(datagram.len) == got => match link.seal.check(tag, &datagram) {
            Check::Right => take(link, &datagram, &bytes[LEN..], place, strays, report)?,
            check => refuse(check, bytes, link, strays),
        },
        _ => read_train(link, bytes, place, strays, report)?,
    }
    Ok(true)
}

fn read_train(
    link: &mut Link,
    mut bytes: &[u8],
    place: &mut Place<'_>,
    strays: &mut Strays,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<(), Closed> {
    let mut train = [(0, Datagram::part(0, 0, 0, 0)); AT_ONCE];
    let mut verdicts = [Check::Forged; AT_ONCE];
    while !bytes.is_empty() {
        let (mut count, mut rest) = (0, bytes);
        while let Some(found) = Datagram::decode(rest).filter(|_| count < AT_ONCE) {
            train[count] = found;
            count += 1;
            rest = &rest[usize::from(found.1.len)..];
        }
        if count == 0 {
            // A greeting has no length where a datagram has it.
            refuse(Check::Forged, bytes, link, strays);
            break;
        }
        link.seal.check_all(&train[..count], &mut verdicts);
        for ((_, datagram), verdict) in train[..count].iter().zip(verdicts) {
            let (now, later) = bytes.split_at(usize::from(datagram.len));
            bytes = later;
            match verdict {
                Check::Right => take(link, datagram, &now[LEN..], place, strays, report)?,
                check => refuse(check, now, link, strays),
            }
        }
    }
    Ok(())
}

#[inline]
fn take(
    link: &mut Link,
    datagram: &Datagram,
    data: &[u8],
    place: &mut Place<'_>,
    strays: &mut Strays,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<(), Closed> {
    link.heard = true;
    match datagram.as_signal() {
        None => {
            if let Err(stray) = link.assemblies.take(datagram, data, place, report) {
                strays.count(stray);
            }
        }
        Some(Some(Signal::Probe)) => link.signal(Signal::Alive),
        Some(Some(Signal::Close)) => return Err(Closed),
        Some(Some(Signal::Alive) | None) => {}
    }
    Ok(())
}

/// A datagram that does not belong to the link. A greeting that comes again, because its answer was lost or
/// late, is no stranger's; its sender gets the answer that the link is open.
#[cold]
fn refuse(check: Check, bytes: &[u8], link: &mut Link, strays: &mut Strays) {
    if link.seal.is_greeting(bytes) {
        return link.signal(Signal::Alive);
    }
    strays.count(match (check, Datagram::decode(bytes)) {
        (_, None) => Stray::Truncated,
        (Check::Repeated, _) => Stray::Repeated,
        _ => Stray::Forged,
    });
}
