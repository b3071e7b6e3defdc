//! What rails there are and how they are, asked of the kernel.

use super::interface;
use super::shape;
use crate::{Rate, rail_name};
use nmad_netlink::{Message, Socket, find_attribute, u32_at};
use std::io;

/// `struct ifinfomsg` ends here and attributes begin.
const DEVICE_ATTRIBUTES_AT: usize = 16;
/// So `struct tcmsg`.
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
    /// The longest frame, in bytes behind its Ethernet header.
    pub mtu: u32,
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
        let (up, mtu) = device(socket, index)?;
        rails.push(RailState { name, up, rate: rate(socket, index)?, mtu });
    }
    Ok(rails)
}

/// Whether it is switched on and has a carrier, and its MTU.
fn device(socket: &mut Socket, index: u32) -> io::Result<(bool, u32)> {
    let answers = socket.ask(Message::new(libc::RTM_GETLINK, 0).put(&interface::header(index, 0, 0)))?;
    let body = answers.first().map_or(&[][..], |body| body);
    let wanted = (libc::IFF_UP | libc::IFF_LOWER_UP) as u32;
    let is_up = u32_at(body, 8).unwrap_or(0) & wanted == wanted;
    let attributes = body.get(DEVICE_ATTRIBUTES_AT..).unwrap_or_default();
    let mtu = find_attribute(attributes, libc::IFLA_MTU).and_then(|value| u32_at(value, 0));
    Ok((is_up, mtu.unwrap_or(0)))
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
