//! Receiving: one read from a peer's socket returns one datagram, or several that the kernel has joined.

use super::route::Route;
use crate::datagram::assembly::Place;
use crate::datagram::greeting;
use crate::datagram::header::{Datagram, LEN, Signal};
use crate::datagram::link::Link;
use crate::datagram::seal::{AT_ONCE, Check};
use crate::datagram::strays::Strays;
use nmad_engine::transfer::driver::Event;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};

/// The peer has closed the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// Reads once and reports complete orders. False: there was no data.
///
/// # Errors
/// The peer has closed the link.
#[inline]
pub fn read(
    link: &mut Link<Route>,
    scratch: &mut [u8],
    place: &mut Place<'_>,
    strays: &mut Strays,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<bool, Closed> {
    let got = match net::recv(&link.route.socket, &mut *scratch, RecvFlags::empty()) {
        Ok((_, got)) => got,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
        // The error is about an earlier datagram of ours; received datagrams are behind it.
        Err(e) => {
            link.refused(e);
            return Ok(true);
        }
    };
    if link.seal.is_encrypted() {
        return decrypt(link, &mut scratch[..got], place, strays, report).map(|()| true);
    }
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

/// Decrypts one datagram, or several that the kernel has joined.
fn decrypt(
    link: &mut Link<Route>,
    mut bytes: &mut [u8],
    place: &mut Place<'_>,
    strays: &mut Strays,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<(), Closed> {
    while !bytes.is_empty() {
        // A handshake message has no length of a datagram at that offset.
        let found = Datagram::decode(bytes).filter(|_| !greeting::is_one(bytes));
        let Some((_, datagram)) = found else {
            refuse(Check::Forged, bytes, link, strays);
            break;
        };
        let (now, later) = bytes.split_at_mut(usize::from(datagram.len));
        bytes = later;
        match link.seal.decrypt(&datagram, now) {
            Ok(data) => take(link, &datagram, data, place, strays, report)?,
            Err(check) => refuse(check, now, link, strays),
        }
    }
    Ok(())
}

fn read_train(
    link: &mut Link<Route>,
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
            // A handshake message has no length of a datagram at that offset.
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
    link: &mut Link<Route>,
    datagram: &Datagram,
    data: &[u8],
    place: &mut Place<'_>,
    strays: &mut Strays,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<(), Closed> {
    link.has_arrived = true;
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

/// Handles a datagram without the link's tag.
#[cold]
fn refuse(check: Check, bytes: &[u8], link: &mut Link<Route>, strays: &mut Strays) {
    match link.stray(check, bytes) {
        Some(stray) => strays.count(stray),
        None => link.signal(Signal::Alive),
    }
}
