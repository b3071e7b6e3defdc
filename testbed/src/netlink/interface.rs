//! Devices and their addresses.

use nmad_netlink::{Message, Socket, u32_at};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

const VETH_INFO_PEER: u16 = 1;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;
const IFLA_GSO_MAX_COUNT: u16 = 40;
const IFLA_GSO_MAX_SIZE: u16 = 41;

/// One end of a pair of devices.
pub(crate) struct End<'a> {
    /// Its name there.
    pub name: &'a str,
    /// The network namespace it is born in; `None` is that of the socket.
    pub namespace: Option<BorrowedFd<'a>>,
}

/// Makes two devices, each of which receives what the other sends.
pub(crate) fn create_pair(socket: &mut Socket, one: &End<'_>, other: &End<'_>) -> io::Result<()> {
    let peer = |message: Message| describe(message.put(&header(0, 0, 0)), other);
    let message = describe(create().put(&header(0, 0, 0)), one).nest(libc::IFLA_LINKINFO, |info| {
        info.text(libc::IFLA_INFO_KIND, "veth")
            .nest(libc::IFLA_INFO_DATA, |data| data.nest(VETH_INFO_PEER, peer))
    });
    socket.order(message)
}

/// Makes a bridge that forwards everything, learning where addresses are.
pub(crate) fn create_bridge(socket: &mut Socket, name: &str) -> io::Result<()> {
    let message =
        create().put(&header(0, 0, 0)).text(libc::IFLA_IFNAME, name).nest(libc::IFLA_LINKINFO, |info| {
            // Without snooping, multicast (and with it IPv6) works from the first packet on.
            info.text(libc::IFLA_INFO_KIND, "bridge")
                .nest(libc::IFLA_INFO_DATA, |data| data.attribute(IFLA_BR_MCAST_SNOOPING, &[0]))
        });
    socket.order(message)
}

/// The index of the device `name`, or an error of kind "no such device".
pub(crate) fn find(socket: &mut Socket, name: &str) -> io::Result<u32> {
    let message = Message::new(libc::RTM_GETLINK, 0).put(&header(0, 0, 0)).text(libc::IFLA_IFNAME, name);
    let answers = socket.ask(message)?;
    let index = answers.first().and_then(|body| u32_at(body, 4));
    index.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Switches the device `index` on or off. Off, its other end loses its carrier and its routes go.
pub(crate) fn set_up(socket: &mut Socket, index: u32, up: bool) -> io::Result<()> {
    let mask = libc::IFF_UP as u32;
    socket.order(change().put(&header(index, if up { mask } else { 0 }, mask)))
}

/// Plugs the device `index` into the bridge `master`.
pub(crate) fn set_master(socket: &mut Socket, index: u32, master: u32) -> io::Result<()> {
    socket.order(change().put(&header(index, 0, 0)).attribute(libc::IFLA_MASTER, &master.to_ne_bytes()))
}

/// Has the device `index` take frames with up to `mtu` bytes behind their Ethernet headers.
pub(crate) fn set_mtu(socket: &mut Socket, index: u32, mtu: u32) -> io::Result<()> {
    socket.order(change().put(&header(index, 0, 0)).attribute(libc::IFLA_MTU, &mtu.to_ne_bytes()))
}

/// Limits what the device `index` is handed at once, in bytes.
pub(crate) fn set_gso_max_len(socket: &mut Socket, index: u32, len: u32) -> io::Result<()> {
    socket.order(change().put(&header(index, 0, 0)).attribute(IFLA_GSO_MAX_SIZE, &len.to_ne_bytes()))
}

/// Limits how many frames the device `index` is handed at once as one.
pub(crate) fn set_gso_max_count(socket: &mut Socket, index: u32, count: u32) -> io::Result<()> {
    socket.order(change().put(&header(index, 0, 0)).attribute(IFLA_GSO_MAX_COUNT, &count.to_ne_bytes()))
}

/// Gives the device `index` an address, unless it has it. IPv6 addresses are usable at once (no search
/// for duplicates).
pub(crate) fn add_address(
    socket: &mut Socket,
    index: u32,
    address: IpAddr,
    prefix_bits: u8,
) -> io::Result<()> {
    let message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    socket.order(name_address(message, index, address, prefix_bits))
}

/// Takes an address of the device `index` away; it may be gone already.
pub(crate) fn remove_address(
    socket: &mut Socket,
    index: u32,
    address: IpAddr,
    prefix_bits: u8,
) -> io::Result<()> {
    let message = name_address(Message::new(libc::RTM_DELADDR, 0), index, address, prefix_bits);
    match socket.order(message) {
        Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Ok(()),
        other => other,
    }
}

/// `struct ifaddrmsg` and what follows it.
fn name_address(message: Message, index: u32, address: IpAddr, prefix_bits: u8) -> Message {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
    let mut fixed = vec![family as u8, prefix_bits, flags, 0];
    fixed.extend_from_slice(&index.to_ne_bytes());
    let message = message.put(&fixed);
    message.attribute(libc::IFA_LOCAL, &bytes).attribute(libc::IFA_ADDRESS, &bytes)
}

fn create() -> Message {
    Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
}

fn change() -> Message {
    Message::new(libc::RTM_NEWLINK, 0)
}

fn describe(message: Message, end: &End<'_>) -> Message {
    let message = message.text(libc::IFLA_IFNAME, end.name);
    match end.namespace {
        Some(file) => message.attribute(libc::IFLA_NET_NS_FD, &file.as_raw_fd().to_ne_bytes()),
        None => message,
    }
}

/// `struct ifinfomsg`.
pub(super) fn header(index: u32, flags: u32, mask: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..16].copy_from_slice(&mask.to_ne_bytes());
    bytes
}
