//! State of the network interface of a rail, from the kernel (rtnetlink): the cable is pulled, the
//! interface is switched off, or its address is removed. The kernel reports this at once; without it a rail
//! only notices that peers are silent, which takes a timeout. Where netlink is forbidden, the timeout alone
//! is used.

use crate::interface::Interface;
use crate::news::News;
use crate::watch::{Token, Watch};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::Event;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{self, AddressFamily, RecvFlags, SocketFlags, SocketType};
use std::net::IpAddr;

/// Multicast groups to subscribe to: link state, IPv4 and IPv6 addresses (rtnetlink(7), `RTMGRP_LINK`,
/// `RTMGRP_IPV4_IFADDR`, `RTMGRP_IPV6_IFADDR`).
const GROUPS: u32 = 0x1 | 0x10 | 0x100;

/// Watches the interface of one rail.
#[derive(Debug)]
pub(crate) struct Carrier {
    interface: Interface,
    socket: Option<OwnedFd>,
    is_lost: bool,
}

impl Carrier {
    /// Starts watching an interface that is up. A change of its state wakes a thread that sleeps on
    /// `watch`.
    pub(crate) fn new(interface: &Interface, watch: &Watch) -> Carrier {
        let socket = listen().ok().filter(|socket| watch.add(socket, Token::Carrier, false).is_ok());
        Carrier { interface: interface.clone(), socket, is_lost: false }
    }

    /// Reads the kernel's notifications. If the state of this interface changed, reports it for each of
    /// `peers`.
    pub(crate) fn read_notifications(&mut self, peers: impl Iterator<Item = PeerId>, news: &mut News) {
        let Some(socket) = &self.socket else { return };
        // Notifications concern any interface and may be outdated: drain them and query the present state.
        let next = || net::recv(socket, &mut [0u8; 8192], RecvFlags::DONTWAIT);
        while let Ok((_, 1..)) | Err(Errno::INTR | Errno::NOBUFS) = next() {}
        let Ok(why) = lost(&self.interface) else { return };
        if why.is_some() == self.is_lost {
            return;
        }
        self.is_lost = why.is_some();
        let name = &self.interface.name;
        let lost = why.map(|why| format!("interface {name} {why}"));
        log::info!("{}", lost.clone().unwrap_or_else(|| format!("interface {name} has its carrier again")));
        news.found.extend(peers.map(|peer| Event::Carrier { peer, lost: lost.clone() }));
    }
}

fn listen() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    // No protocol number: 0 is NETLINK_ROUTE.
    let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    net::bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
    Ok(socket)
}

/// Returns why the interface carries no traffic, or none if it does.
fn lost(interface: &Interface) -> Result<Option<&'static str>, nix::Error> {
    let entries: Vec<_> = getifaddrs()?.filter(|found| found.interface_name == interface.name).collect();
    let has = |flag| entries.iter().any(|found| found.flags.contains(flag));
    let address = |found: &nix::ifaddrs::InterfaceAddress| -> Option<IpAddr> {
        let address = found.address.as_ref()?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    Ok(match entries.iter().any(|found| address(found) == Some(interface.address)) {
        _ if entries.is_empty() => Some("is gone"),
        _ if !has(InterfaceFlags::IFF_UP) => Some("was switched off"),
        _ if !has(InterfaceFlags::IFF_LOWER_UP) => Some("has lost its carrier"),
        false => Some("has lost its address"),
        true => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_there_carries_and_others_do_not() {
        let here = Interface::loopback();
        assert_eq!(lost(&here), Ok(None));
        let elsewhere = Interface { address: "192.0.2.1".parse().expect("an address"), ..here.clone() };
        assert_eq!(lost(&elsewhere), Ok(Some("has lost its address")));
        assert_eq!(lost(&Interface { name: "none0".into(), ..here }), Ok(Some("is gone")));
    }

    #[test]
    fn a_change_is_reported_once_for_each_peer() {
        let watch = Watch::new().expect("an epoll");
        let mut carrier = Carrier::new(&Interface::loopback(), &watch);
        let mut news = News::default();
        carrier.read_notifications([PeerId(1), PeerId(2)].into_iter(), &mut news);
        assert!(news.is_empty(), "nothing has changed");
        carrier.interface.name = "none0".into();
        for _ in 0..2 {
            carrier.read_notifications([PeerId(1), PeerId(2)].into_iter(), &mut news);
        }
        let reported: Vec<_> = news.found.drain(..).map(|event| format!("{event:?}")).collect();
        assert!(
            reported.len() == 2 && reported[1].contains("PeerId(2)") && reported[1].contains("none0 is gone"),
            "{reported:?}"
        );
    }
}
