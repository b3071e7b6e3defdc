//! Finds the device and port of an interface, in the kernel's file systems.
//!
//! | network | device and port | identifier |
//! |---|---|---|
//! | RoCE | whose table of identifiers names the interface | of RoCE v2, preferably with its address |
//! | InfiniBand | of the interface's own device | the first, needed only across subnets |

use crate::interface::Interface;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// A port, and the index of this side's entry in its table of identifiers (GID table).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) device: String,
    pub(super) number: u8,
    pub(super) identifier: u8,
}

/// Folders of the kernel's RDMA devices, and of interfaces.
const DEVICES: &str = "/sys/class/infiniband";
const INTERFACES: &str = "/sys/class/net";

/// Returns whether this machine has any RDMA device.
pub(super) fn has_devices() -> bool {
    !list(Path::new(DEVICES)).is_empty()
}

/// Finds the port of an interface.
///
/// # Errors
/// There is none; the text lists the interfaces that have one.
pub(super) fn of(interface: &Interface) -> Result<Port, String> {
    find(Path::new(DEVICES), Path::new(INTERFACES), interface)
}

fn find(devices: &Path, interfaces: &Path, interface: &Interface) -> Result<Port, String> {
    let mut best: Option<(bool, Port)> = None;
    let mut others = Vec::new();
    for device in list(devices) {
        for port in list(&devices.join(&device).join("ports")) {
            let Ok(number) = port.parse() else { continue };
            let at = devices.join(&device).join("ports").join(&port);
            for entry in list(&at.join("gid_attrs/ndevs")) {
                let (Some(name), Ok(identifier)) =
                    (text(&at.join("gid_attrs/ndevs").join(&entry)), entry.parse())
                else {
                    continue;
                };
                if text(&at.join("gid_attrs/types").join(&entry)).as_deref() != Some("RoCE v2") {
                    continue;
                }
                if name != interface.name {
                    others.push(name);
                    continue;
                }
                let is_own =
                    text(&at.join("gids").join(&entry)).is_some_and(|gid| names(&gid, interface.address));
                if best.as_ref().is_none_or(|(best, _)| is_own && !best) {
                    best = Some((is_own, Port { device: device.clone(), number, identifier }));
                }
            }
        }
    }
    if let Some((_, port)) = best {
        return Ok(port);
    }
    let own = interfaces.join(&interface.name);
    if let Some(device) = list(&own.join("device/infiniband")).into_iter().next() {
        // Ports are numbered from one, `dev_port` from zero.
        let number = text(&own.join("dev_port")).and_then(|text| text.parse::<u8>().ok()).unwrap_or(0) + 1;
        return Ok(Port { device, number, identifier: 0 });
    }
    others.sort_unstable();
    others.dedup();
    let others = if others.is_empty() { "no interface".into() } else { others.join(", ") };
    let name = &interface.name;
    Err(format!("interface {name} belongs to no RDMA device ({others} does; `rdma link` lists them)"))
}

fn list(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // Sorted by value, so that the first fitting entry of the table is chosen.
    names.sort_by_key(|name| (name.parse::<u32>().unwrap_or(0), name.clone()));
    names
}

/// Reads a file; unused entries of a table cannot be read.
fn text(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

/// Returns whether an identifier (`0000:0000:0000:0000:0000:ffff:0a63:0001`) contains this IP address.
fn names(identifier: &str, address: IpAddr) -> bool {
    let words = identifier.split(':').map(|word| u16::from_str_radix(word, 16));
    let Ok(words) = words.collect::<Result<Vec<u16>, _>>() else { return false };
    let Ok(words) = <[u16; 8]>::try_from(words) else { return false };
    let expected = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    words == expected.segments()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str) -> Interface {
        let address = address.parse().expect("an address");
        Interface { name: name.into(), address, prefix: 24, bandwidth: 0 }
    }

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }

    #[test]
    fn an_interface_leads_to_its_port_and_address() {
        let root = tempfile::tempdir().expect("a folder");
        let (devices, interfaces) = (root.path().join("infiniband"), root.path().join("net"));
        let gids = [
            ("fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1"),
            ("fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"),
            ("0000:0000:0000:0000:0000:ffff:0a63:0001", "RoCE v2"),
        ];
        for (entry, (gid, kind)) in gids.iter().enumerate() {
            let port = "rxe0/ports/1";
            write(&devices, &format!("{port}/gids/{entry}"), gid);
            write(&devices, &format!("{port}/gid_attrs/types/{entry}"), kind);
            write(&devices, &format!("{port}/gid_attrs/ndevs/{entry}"), "eth1\n");
        }
        write(&interfaces, "ib0/device/infiniband/mlx4_0/x", "");
        write(&interfaces, "ib0/dev_port", "1\n");
        let port = |device: &str, number, identifier| Port { device: device.into(), number, identifier };
        let find = |name, address| find(&devices, &interfaces, &interface(name, address));
        assert_eq!(find("eth1", "10.99.0.1"), Ok(port("rxe0", 1, 2)));
        assert_eq!(find("eth1", "10.99.0.9"), Ok(port("rxe0", 1, 1)));
        assert_eq!(find("ib0", "10.1.0.1"), Ok(port("mlx4_0", 2, 0)));
        let why = find("eth0", "10.99.0.1").expect_err("no device");
        assert!(why.contains("eth0") && why.contains("(eth1 does"), "{why}");
    }
}
