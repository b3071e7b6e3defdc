//! How other processes reach this one: a TCP port on all addresses of this host, of IPv4 and of IPv6, and a
//! socket for processes of this host, which needs no network at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

use nix::net::if_::InterfaceFlags;
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, ipproto, sockopt,
};

/// More addresses than a machine has interfaces that matter.
const ADDRESSES_MAX: usize = 16;

/// Connections that wait to be accepted: all hosts of a job may come at once.
const BACKLOG: i32 = 1024;

/// None of the sockets blocks or is inherited.
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Listens on a free TCP port of all addresses of this host.
///
/// # Errors
/// The system has no socket left.
pub fn listen() -> Result<TcpListener, Errno> {
    let both = listen_at(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)));
    // A kernel without IPv6.
    let fd = both.or_else(|_| listen_at(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))?;
    Ok(TcpListener::from(fd))
}

fn listen_at(any: &SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if any.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let fd = net::socket_with(family, SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    if any.is_ipv6() {
        // Without this the system's setting decides whether the socket takes connections over IPv4 as well.
        sockopt::set_ipv6_v6only(&fd, false)?;
    }
    net::bind(&fd, any)?;
    net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// Addresses at which other processes may reach a port of [`listen`].
///
/// # Errors
/// The system does not list its interfaces.
pub fn addresses(listener: &TcpListener) -> std::io::Result<Vec<IpAddr>> {
    let has_v6 = listener.local_addr()?.is_ipv6();
    let own = own_addresses()?.into_iter();
    Ok(in_order(own.filter(|address| address.is_ipv4() || has_v6).collect()))
}

/// The addresses of this host's interfaces that are up.
///
/// # Errors
/// The system does not list its interfaces.
pub fn own_addresses() -> std::io::Result<Vec<IpAddr>> {
    let up = nix::ifaddrs::getifaddrs()?.filter(|one| one.flags.contains(InterfaceFlags::IFF_UP));
    let address = |one: nix::ifaddrs::InterfaceAddress| {
        let v4 = one.address?.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| Some(IpAddr::from(one.address?.as_sockaddr_in6()?.ip())))
    };
    Ok(up.filter_map(address).collect())
}

/// Addresses in the order in which others shall try them: IPv4 and IPv6 in turns, so that a short list has both;
/// loopback addresses last.
pub(crate) fn in_order(found: Vec<IpAddr>) -> Vec<IpAddr> {
    let (local, wide): (Vec<_>, Vec<_>) = found.into_iter().partition(IpAddr::is_loopback);
    let (v4, v6): (Vec<_>, Vec<_>) = wide.into_iter().filter(is_wide).partition(IpAddr::is_ipv4);
    let most = v4.len().max(v6.len());
    let in_turns = (0..most).flat_map(|at| [v4.get(at).copied(), v6.get(at).copied()]).flatten();
    let mut all: Vec<IpAddr> = in_turns.collect();
    all.truncate(ADDRESSES_MAX);
    all.extend(local);
    all
}

/// Whether an address means the same to another process: addresses of one link need its name as well.
fn is_wide(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    }
}

/// Listens for processes of this host that know `name`; the name is none of a file.
///
/// # Errors
/// Another process has this name, or the system has no socket left.
pub fn listen_here(name: &str) -> Result<OwnedFd, Errno> {
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    net::bind(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// Begins to connect to where [`listen_here`] has this name.
///
/// # Errors
/// No process of this user on this host has it.
pub fn connect_here(name: &str) -> Result<OwnedFd, Errno> {
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    begin(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?.into())?;
    if is_own_user(&fd) { Ok(fd) } else { Err(Errno::ACCESS) }
}

/// Begins to connect to a TCP port; it has connected when it can be written to.
///
/// # Errors
/// There is no way to this address.
pub fn connect(to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let fd = net::socket_with(family, SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    begin(&fd, &to.into())?;
    Ok(fd)
}

fn begin(fd: &OwnedFd, to: &SocketAddrAny) -> Result<(), Errno> {
    match net::connect(fd, to) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes a connection that waits, unless another user of this host has made it at a socket of
/// [`listen_here`], whose name the system shows to everybody.
pub fn accept(listener: &OwnedFd) -> Option<OwnedFd> {
    let fd = net::accept_with(listener, FLAGS).ok()?;
    is_own_user(&fd).then_some(fd)
}

/// Whether the process at the other end may be trusted with this one's time: not if it is another user's of
/// this host. TCP does not tell.
fn is_own_user(fd: &impl AsFd) -> bool {
    match sockopt::socket_domain(fd) {
        Ok(AddressFamily::UNIX) => {
            sockopt::socket_peercred(fd).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_take_turns_and_loopback_comes_last() {
        let read = |text: &str| text.split(' ').map(|one| one.parse().expect("an address")).collect();
        let found: Vec<IpAddr> = read("127.0.0.1 10.0.0.1 172.17.0.1 169.254.0.9 ::1 fd00::1 fe80::1");
        assert_eq!(in_order(found), read("10.0.0.1 fd00::1 172.17.0.1 127.0.0.1 ::1") as Vec<IpAddr>);
        let many: Vec<IpAddr> = (0..99).map(|n| IpAddr::from([10, 0, 0, n])).collect();
        assert_eq!(in_order(many).len(), ADDRESSES_MAX);
    }

    #[test]
    fn a_port_takes_both_families() {
        let listener = listen().expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("IPv4");
        listener.set_nonblocking(false).expect("it is a socket");
        listener.accept().expect("it came");
        if listener.local_addr().expect("it has one").is_ipv6()
            && addresses(&listener).expect("a list").contains(&Ipv6Addr::LOCALHOST.into())
        {
            std::net::TcpStream::connect((Ipv6Addr::LOCALHOST, port)).expect("IPv6");
            listener.accept().expect("it came");
        }
    }

    #[test]
    fn processes_of_this_host_need_no_network() {
        let name = format!("nmad-test-{}", std::process::id());
        let listener = listen_here(&name).expect("a socket");
        let _ours = connect_here(&name).expect("it listens");
        assert!(accept(&listener).is_some() && accept(&listener).is_none());
        assert_eq!(listen_here(&name).expect_err("it is taken"), Errno::ADDRINUSE);
        drop(listener);
        assert_eq!(connect_here(&name).expect_err("it is gone"), Errno::CONNREFUSED);
    }
}
