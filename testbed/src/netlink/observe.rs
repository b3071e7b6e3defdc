//! What rails there are and how they are, asked of the kernel.

use super::interface;
use super::message::{Message, u32_at};
use super::shape;
use super::socket::Socket;
use crate::{Rate, rail_name};
use std::io;

/// `struct ifinfomsg` and `struct tcmsg` end here and attributes begin.
const QUEUE_ATTRIBUTES_AT: usize = 20;

/// One rail as one host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RailState {
    /// Its name, `r0`.
    pub name: String,
    /// Switched on, here and at the other end.
    pub up: bool,
    /// What this host may send.
    pub rate: Rate,
}

/// The rails `r0`, `r1`, ... of the namespace of `socket`.
pub(crate) fn observe(socket: &mut Socket) -> io::Result<Vec<RailState>> {
    let mut rails = Vec::new();
    for rail in 0.. {
        let name = rail_name(rail);
        let index = match interface::find(socket, &name) {
            Ok(index) => index,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => break,
            Err(error) => return Err(error),
        };
        let up = running(socket, index)?;
        rails.push(RailState { name, up, rate: rate(socket, index)? });
    }
    Ok(rails)
}

/// Switched on and with a carrier.
fn running(socket: &mut Socket, index: u32) -> io::Result<bool> {
    let answers = socket.ask(Message::new(libc::RTM_GETLINK, 0).put(&interface::header(index, 0, 0)))?;
    let flags = answers.first().and_then(|body| u32_at(body, 8)).unwrap_or(0);
    let wanted = (libc::IFF_UP | libc::IFF_LOWER_UP) as u32;
    Ok(flags & wanted == wanted)
}

fn rate(socket: &mut Socket, index: u32) -> io::Result<Rate> {
    let message = Message::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP).put(&shape::header(index));
    let queues = socket.ask(message)?;
    // The kernel lists the queues of all devices.
    let limit = queues
        .iter()
        .filter(|body| u32_at(body, 4) == Some(index))
        .find_map(|body| shape::read(body.get(QUEUE_ATTRIBUTES_AT..)?));
    Ok(limit.unwrap_or(Rate::Unlimited))
}
