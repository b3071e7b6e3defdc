//! Non-blocking sockets with the options that the driver depends on.

use super::config::UdpConfig;
use crate::error::DriverError;
use nix::sys::socket::{setsockopt, sockopt as nixopt};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::net::{IpAddr, SocketAddr};

/// Longest data of a datagram that both IP versions carry.
const DATA_MAX: usize = 65_507;

/// Opens a socket on a free port of the rail's address; returns also that port.
pub fn listen(name: &str, config: &UdpConfig) -> Result<(OwnedFd, u16), DriverError> {
    let at = config.address();
    let fail = |what: String| move |e: Errno| DriverError::new(name, what, e);
    let fd = bound(config, 0)
        .map_err(fail(format!("cannot use UDP at the address {at} (is it still one of this machine?)")))?;
    let port = net::getsockname(&fd)
        .and_then(SocketAddr::try_from)
        .map_err(fail(format!("cannot query the port on {at}")))?
        .port();
    Ok((fd, port))
}

/// Opens a socket from this port (zero: a free one) of the rail's address, connected to `to`.
pub fn connect(config: &UdpConfig, port: u16, to: SocketAddr) -> Result<OwnedFd, Errno> {
    let fd = bound(config, port)?;
    net::connect(&fd, &to)?;
    Ok(fd)
}

fn bound(config: &UdpConfig, port: u16) -> Result<OwnedFd, Errno> {
    let at = config.address();
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = net::socket_with(family, SocketType::DGRAM, flags, Some(net::ipproto::UDP))?;
    // The sockets of links that were opened from the other side share the port that peers know, so that a
    // firewall sees one connection.
    sockopt::set_socket_reuseport(&fd, true)?;
    // A smaller buffer than requested is no failure; its size is queried when a link opens.
    let _ = sockopt::set_socket_recv_buffer_size(&fd, config.buffer);
    let _ = sockopt::set_socket_send_buffer_size(&fd, config.buffer);
    // Datagrams too long for the path are dropped instead of fragmented: the loss of one fragment loses the
    // whole datagram.
    match at {
        IpAddr::V4(_) => sockopt::set_ip_mtu_discover(&fd, Ipv4PathMtuDiscovery::DO)?,
        IpAddr::V6(_) => sockopt::set_ipv6_mtu_discover(&fd, Ipv6PathMtuDiscovery::DO)?,
    }
    net::bind(&fd, &SocketAddr::new(at, port))?;
    Ok(fd)
}

/// The largest result of [`longest`] for a socket whose route is gone, as when its interface goes down: the
/// kernel then uses a device with the smallest possible MTU, 68 B. The next send reports the error.
pub const NOWHERE: usize = 68 - 28;

/// Longest data of a datagram that the kernel expects to pass on a connected socket.
pub fn longest(fd: &OwnedFd) -> usize {
    let (mtu, headers) = match sockopt::socket_domain(fd) {
        Ok(AddressFamily::INET6) => (sockopt::ipv6_mtu(fd), 48),
        _ => (sockopt::ip_mtu(fd), 28),
    };
    (mtu.unwrap_or(1500) as usize).saturating_sub(headers).min(DATA_MAX)
}

/// Bytes of data that certainly fit into the socket's receive buffer. Half of its size: the kernel also
/// counts its own structures, which take up to as much again for datagrams of the usual length.
pub fn buffer(fd: &OwnedFd) -> u32 {
    sockopt::socket_recv_buffer_size(fd).map_or(0, |len| (len / 2) as u32)
}

/// Makes the kernel cut sent data into datagrams of `len` bytes. False: the kernel cannot.
pub fn cut(fd: &OwnedFd, len: usize) -> bool {
    setsockopt(fd, nixopt::UdpGsoSegment, &(len as i32)).is_ok()
}

/// Makes the kernel join consecutive datagrams. This is optional and only faster.
pub fn join(fd: &OwnedFd) {
    let _ = setsockopt(fd, nixopt::UdpGroSegment, &true);
}
