//! Addresses of this process for other processes: a TCP port on all IPv4 and IPv6 addresses of this host,
//! and a Unix socket for processes of this host, which works without a network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

use nix::net::if_::InterfaceFlags;
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, ipproto, sockopt,
};

/// Most addresses; more than the relevant interfaces of a machine.
const ADDRESSES_MAX: usize = 16;

/// Backlog of connections: all hosts of a job may connect at the same time.
const BACKLOG: i32 = 1024;

/// Flags of all sockets: they do not block and are not inherited.
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Listens on a free TCP port of all addresses of this host.
///
/// # Errors
/// The system has no socket left.
pub fn listen() -> Result<TcpListener, Errno> {
    let both = listen_at(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)));
    // The second attempt is for kernels without IPv6.
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

/// Returns the addresses at which other processes may reach a port of [`listen`].
///
/// # Errors
/// The system does not list its interfaces.
pub fn addresses(listener: &TcpListener) -> std::io::Result<Vec<IpAddr>> {
    let has_v6 = listener.local_addr()?.is_ipv6();
    let own = own_addresses()?.into_iter();
    Ok(in_order(own.filter(|address| address.is_ipv4() || has_v6).collect()))
}

/// Returns the addresses of this host's interfaces that are up.
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

/// Sorts addresses in the order for connecting: IPv4 and IPv6 alternate, so that a short list has both;
/// loopback addresses come last.
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

/// Returns whether an address is valid on other hosts; a link-local address also needs the interface.
fn is_wide(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    }
}

/// Listens for processes of this host that know `name`, which is in the abstract namespace and not a file.
///
/// # Errors
/// Another process has this name, or the system has no socket left.
pub fn listen_here(name: &str) -> Result<OwnedFd, Errno> {
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    net::bind(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// Begins to connect to the socket that [`listen_here`] opened with this name.
///
/// # Errors
/// No process of this user on this host has it.
pub fn connect_here(name: &str) -> Result<OwnedFd, Errno> {
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    begin(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?.into())?;
    if is_own_user(&fd) { Ok(fd) } else { Err(Errno::ACCESS) }
}

/// Begins to connect to a TCP port; the connection is established when it becomes writable.
///
/// # Errors
/// The address is not reachable.
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

/// Accepts a waiting connection. Rejects other users of this host at a socket of [`listen_here`], since the
/// system shows its name to all users.
pub fn accept(listener: &OwnedFd) -> Option<OwnedFd> {
    let fd = net::accept_with(listener, FLAGS).ok()?;
    is_own_user(&fd).then_some(fd)
}

/// Returns whether the other end may use this process's time: false for another user of this host. TCP does
/// not tell the user.
fn is_own_user(fd: &impl AsFd) -> bool {
    match sockopt::socket_domain(fd) {
        Ok(AddressFamily::UNIX) => {
            sockopt::socket_peercred(fd).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
        }
        _ => true,
    }
}

/// Usual names of the loopback address.
const LOCAL_NAMES: [&str; 5] =
    ["localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost"];

/// Returns whether a name or an address is that of this host. Names are not resolved, since that may take
/// long.
pub(crate) fn is_here(name: &str) -> bool {
    if let Ok(address) = name.parse::<IpAddr>() {
        return address.is_loopback() || own_addresses().is_ok_and(|own| own.contains(&address));
    }
    let own = crate::host_name();
    let short = own.split('.').next().unwrap_or_default();
    LOCAL_NAMES.contains(&name) || [&own, short].contains(&name)
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
