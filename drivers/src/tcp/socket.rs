//! Non-blocking sockets with the options that were measured to be best.

use super::config::TcpConfig;
use super::sys;
use crate::error::DriverError;
use crate::interface;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::net::{IpAddr, SocketAddr};

/// Backlog of the listening socket; all peers of a large job may connect at once.
const BACKLOG: i32 = 1024;
/// Longest time between two retransmissions to a silent peer, where the kernel supports a limit.
const RETRY_MAX_MS: i32 = 1000;

/// How the sockets of one rail leave this machine.
#[derive(Debug)]
pub struct Exit {
    /// Addresses of this machine, which are not reached through the interface.
    own: Vec<IpAddr>,
    /// Name of the interface, if it has the rail's address.
    device: Option<String>,
}

impl Exit {
    /// Queries the addresses of all interfaces.
    pub fn new(config: &TcpConfig) -> Self {
        let own = interface::own_addresses().unwrap_or_default();
        let ours = |(address, name): &&(IpAddr, String)| {
            *address == config.address() && *name == config.interface.name && !address.is_loopback()
        };
        let device = own.iter().find(ours).map(|(_, name)| name.clone());
        Exit { own: own.into_iter().map(|(address, _)| address).collect(), device }
    }

    /// Binds a connection to the rail's interface, unless both ends are on this machine, whose traffic does
    /// not use the interface.
    fn bind_to_interface(&self, fd: &OwnedFd, to: IpAddr) {
        let Some(device) = self.device.as_ref().filter(|_| !self.own.contains(&to)) else { return };
        // May not be permitted to this user; the source address then has to suffice.
        let _ = sys::bind_to_device(fd.as_fd(), device);
    }
}

/// Listens on a free port of the rail's address; also returns that port.
pub fn listen(name: &str, config: &TcpConfig) -> Result<(OwnedFd, u16), DriverError> {
    let at = config.address();
    let fail = |what: String| move |e: Errno| DriverError::new(name, what, e);
    let fd = new(at).map_err(fail("cannot make a socket".into()))?;
    tune(&fd, config).map_err(|(option, e)| DriverError::new(name, option, e))?;
    net::bind(&fd, &SocketAddr::new(at, 0))
        .map_err(fail(format!("cannot use the address {at} (is it still one of this machine?)")))?;
    net::listen(&fd, BACKLOG).map_err(fail(format!("cannot listen on {at}")))?;
    let port = net::getsockname(&fd)
        .and_then(SocketAddr::try_from)
        .map_err(fail(format!("cannot query the port on {at}")))?
        .port();
    Ok((fd, port))
}

/// Starts connecting from the rail's own address to `to`.
pub fn connect(config: &TcpConfig, exit: &Exit, to: SocketAddr) -> Result<OwnedFd, Errno> {
    let fd = new(config.address())?;
    tune(&fd, config).map_err(|(_, e)| e)?;
    net::bind(&fd, &SocketAddr::new(config.address(), 0))?;
    exit.bind_to_interface(&fd, to.ip());
    match net::connect(&fd, &to) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(fd),
        Err(e) => Err(e),
    }
}

/// Accepts a waiting connection, if there is one; also returns its remote address.
pub fn accept(listener: &OwnedFd, config: &TcpConfig, exit: &Exit) -> Option<(OwnedFd, SocketAddr)> {
    loop {
        match net::acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok((fd, Some(from))) => {
                let Ok(from) = SocketAddr::try_from(from) else { continue };
                // Some systems do not let an accepted socket inherit these options; they are optional.
                let _ = tune(&fd, config);
                exit.bind_to_interface(&fd, from.ip());
                return Some((fd, from));
            }
            Ok((_, None)) | Err(Errno::INTR | Errno::CONNABORTED) => {}
            // Too many open descriptors: treated as no connection, and tried again at the next step.
            Err(_) => return None,
        }
    }
}

fn new(at: IpAddr) -> Result<OwnedFd, Errno> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(family, SocketType::STREAM, flags, Some(net::ipproto::TCP))
}

/// Sets options. Buffers and congestion control take effect only if set before listen and connect.
fn tune(fd: &OwnedFd, config: &TcpConfig) -> Result<(), (String, Errno)> {
    match &config.congestion {
        Some(name) => sockopt::set_tcp_congestion(fd, name)
            .map_err(|e| (format!("congestion control {name} is not available to this user"), e))?,
        None => {
            let _ = ["reno", "cubic"].iter().find(|name| sockopt::set_tcp_congestion(fd, name).is_ok());
        }
    }
    let set = || {
        sockopt::set_tcp_nodelay(fd, true)?;
        config.send_buffer.map_or(Ok(()), |len| sockopt::set_socket_send_buffer_size(fd, len))?;
        config.receive_buffer.map_or(Ok(()), |len| sockopt::set_socket_recv_buffer_size(fd, len))?;
        sockopt::set_socket_keepalive(fd, true)?;
        sockopt::set_tcp_keepidle(fd, config.keepalive)?;
        sockopt::set_tcp_keepintvl(fd, config.keepalive)?;
        sockopt::set_tcp_keepcnt(fd, 3)
    };
    set().map_err(|e| ("cannot set the options of a socket".into(), e))?;
    // Older kernels do not know this option; a dead peer is then detected later.
    let _ = sys::set_retry_max_ms(fd.as_fd(), RETRY_MAX_MS);
    Ok(())
}

/// Shuts down the output of this connection; bytes written before still arrive.
pub fn shutdown_output(fd: BorrowedFd<'_>) {
    let _ = net::shutdown(fd, net::Shutdown::Write);
}
