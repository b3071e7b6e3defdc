//! How a rail is laid: a pair of devices between two hosts, or, among more, a bridge in the switch with a
//! pair to each host. Knows hosts as network namespaces only.

use crate::address::{address, address6, rail_name};
use crate::netlink::{self, End};
use crate::{Rate, TestbedError};
use nmad_netlink::Socket;
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::net::IpAddr;

const VETH: &str = "does this kernel have veth? try modprobe veth";
const BRIDGE: &str = "more than two hosts need a bridge; try modprobe bridge";
const TBF: &str = "does this kernel have the tbf queue? try modprobe sch_tbf, or rails of rate max";
const NFT: &str = "does this kernel have nf_tables for devices, with numgen?";
/// The longest frame that a veth device takes.
pub(crate) const MTU_MAX: u32 = 65_535;
const NAMES: &str = "was the interface removed or renamed?";

/// Lays `rail` between `hosts` (their network namespaces), with `switch` speaking for the switch's.
pub(crate) fn lay(switch: &mut Socket, hosts: &[OwnedFd], rail: u32) -> Result<(), TestbedError> {
    let name = rail_name(rail);
    match hosts {
        [one, other] => {
            let end = |host| End { name: &name, namespace: Some(host) };
            netlink::create_pair(switch, &end(one.as_fd()), &end(other.as_fd()))
                .map_err(|source| kernel(format!("create rail {name}"), source, VETH))
        }
        hosts => lay_bridge(switch, hosts, rail),
    }
}

fn lay_bridge(switch: &mut Socket, hosts: &[OwnedFd], rail: u32) -> Result<(), TestbedError> {
    let name = rail_name(rail);
    let bridge = create_bridge(switch, &name)
        .map_err(|source| kernel(format!("create the bridge of rail {name}"), source, BRIDGE))?;
    for (host, namespace) in hosts.iter().enumerate() {
        let port = format!("{name}h{host}");
        let ours = End { name: &port, namespace: None };
        let theirs = End { name: &name, namespace: Some(namespace.as_fd()) };
        netlink::create_pair(switch, &ours, &theirs)
            .map_err(|source| kernel(format!("create rail {name} of host{host}"), source, VETH))?;
        plug_in(switch, &port, bridge)
            .map_err(|source| kernel(format!("plug host{host} into rail {name}"), source, BRIDGE))?;
    }
    Ok(())
}

fn create_bridge(switch: &mut Socket, name: &str) -> io::Result<u32> {
    netlink::create_bridge(switch, name)?;
    let index = netlink::find(switch, name)?;
    netlink::set_up(switch, index, true)?;
    Ok(index)
}

fn plug_in(switch: &mut Socket, port: &str, bridge: u32) -> io::Result<()> {
    let index = netlink::find(switch, port)?;
    // How long a frame may be is for the hosts to say.
    netlink::set_mtu(switch, index, MTU_MAX)?;
    netlink::set_master(switch, index, bridge)?;
    netlink::set_up(switch, index, true)
}

/// Switches the loopback of a host on.
pub(crate) fn raise_loopback(socket: &mut Socket) -> Result<(), TestbedError> {
    netlink::find(socket, "lo")
        .and_then(|index| netlink::set_up(socket, index, true))
        .map_err(|source| kernel("switch lo on".to_owned(), source, "is the namespace being torn down?"))
}

/// Switches `rail` of host number `host` on, with its addresses, or off.
pub(crate) fn switch(socket: &mut Socket, host: u32, rail: u32, up: bool) -> Result<(), TestbedError> {
    let index = find(socket, rail)?;
    let step = if up { "on" } else { "off" };
    netlink::set_up(socket, index, up)
        .and_then(|()| if up { give_addresses(socket, index, host, rail) } else { Ok(()) })
        .map_err(|source| kernel(format!("switch r{rail} of host{host} {step}"), source, NAMES))
}

/// Gives host number `host` its addresses on `rail`, or takes them away.
pub(crate) fn address_rail(
    socket: &mut Socket,
    host: u32,
    rail: u32,
    has_address: bool,
) -> Result<(), TestbedError> {
    let index = find(socket, rail)?;
    let step = if has_address { "give" } else { "take away" };
    let done = match has_address {
        true => give_addresses(socket, index, host, rail),
        false => take_addresses(socket, index, host, rail),
    };
    done.map_err(|source| kernel(format!("{step} the addresses of host{host} on r{rail}"), source, NAMES))
}

/// Limits what a host sends over `rail`.
pub(crate) fn limit(socket: &mut Socket, rail: u32, rate: Rate) -> Result<(), TestbedError> {
    let index = find(socket, rail)?;
    netlink::shape(socket, index, rate)
        .map_err(|source| kernel(format!("limit rail r{rail} to {rate}"), source, TBF))
}

/// Has a host send and take frames of up to `mtu` bytes over `rail`.
pub(crate) fn size(socket: &mut Socket, rail: u32, mtu: u32) -> Result<(), TestbedError> {
    let index = find(socket, rail)?;
    netlink::set_mtu(socket, index, mtu)
        .map_err(|source| kernel(format!("give r{rail} an MTU of {mtu}"), source, NAMES))
}

/// Makes a host lose one in `one_in` of the frames that it receives over `rail`; none if that is zero.
/// Meanwhile it sends single frames instead of trains, so that each loss is one frame.
pub(crate) fn lose(
    socket: &mut Socket,
    filter: &mut Socket,
    rail: u32,
    one_in: u32,
) -> Result<(), TestbedError> {
    const ANY: u32 = 65_535;
    let index = find(socket, rail)?;
    netlink::set_gso_max_count(socket, index, if one_in == 0 { ANY } else { 1 })
        .and_then(|()| netlink::lose(filter, &rail_name(rail), one_in))
        .map_err(|source| kernel(format!("have r{rail} lose one in {one_in} frames"), source, NFT))
}

/// An interface that was off has lost its IPv6 address, so every rise gives both.
fn give_addresses(socket: &mut Socket, index: u32, host: u32, rail: u32) -> io::Result<()> {
    netlink::add_address(socket, index, IpAddr::V4(address(host, rail)), 24)?;
    match netlink::add_address(socket, index, IpAddr::V6(address6(host, rail)), 64) {
        // A kernel without IPv6, or one told not to use it: rails have IPv4 only then.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::EACCES)) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// Adds the IPv4 address of host number `host` on `rail`, or removes it and keeps the IPv6 address.
pub(crate) fn address_v4(
    socket: &mut Socket,
    host: u32,
    rail: u32,
    has_it: bool,
) -> Result<(), TestbedError> {
    let index = find(socket, rail)?;
    let (step, own) = (if has_it { "give" } else { "take away" }, IpAddr::V4(address(host, rail)));
    let done = match has_it {
        true => netlink::add_address(socket, index, own, 24),
        false => netlink::remove_address(socket, index, own, 24),
    };
    done.map_err(|source| kernel(format!("{step} the IPv4 address of host{host} on r{rail}"), source, NAMES))
}

/// Adds an interface over which no other host can be reached: with a carrier one end of a pair whose other
/// end nothing uses; without, a bridge without ports.
pub(crate) fn lead_nowhere(
    socket: &mut Socket,
    name: &str,
    own: IpAddr,
    has_carrier: bool,
) -> Result<(), TestbedError> {
    let mut add = || {
        if has_carrier {
            let other = format!("{name}-end");
            let end = |name| End { name, namespace: None };
            netlink::create_pair(socket, &end(name), &end(&other))?;
            let index = netlink::find(socket, &other)?;
            netlink::set_up(socket, index, true)?;
        } else {
            netlink::create_bridge(socket, name)?;
        }
        let index = netlink::find(socket, name)?;
        netlink::set_up(socket, index, true)?;
        netlink::add_address(socket, index, own, if own.is_ipv4() { 24 } else { 64 })
    };
    let remedy = if has_carrier { VETH } else { BRIDGE };
    add().map_err(|source| kernel(format!("create the interface {name}"), source, remedy))
}

fn take_addresses(socket: &mut Socket, index: u32, host: u32, rail: u32) -> io::Result<()> {
    netlink::remove_address(socket, index, IpAddr::V4(address(host, rail)), 24)?;
    // A kernel without IPv6 has none to take away.
    let _ = netlink::remove_address(socket, index, IpAddr::V6(address6(host, rail)), 64);
    Ok(())
}

fn find(socket: &mut Socket, rail: u32) -> Result<u32, TestbedError> {
    let name = rail_name(rail);
    netlink::find(socket, &name).map_err(|source| match source.raw_os_error() {
        Some(libc::ENODEV) => TestbedError::NoSuchRail { asked: name },
        _ => kernel(format!("find rail {name}"), source, NAMES),
    })
}

fn kernel(step: String, source: io::Error, remedy: &'static str) -> TestbedError {
    TestbedError::Kernel { step, source, remedy }
}
