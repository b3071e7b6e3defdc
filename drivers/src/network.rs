//! Registry of the drivers for network interfaces. The list is `NETWORKS` in the crate's root; users choose
//! drivers by name.

use crate::around::layers::{Layered, Layers};
use crate::error::DriverError;
use crate::interface::Interface;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::Driver;
use nmad_seal::Policy;

/// The parameters with which a driver opens a rail.
pub struct Place {
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of the rail in this process.
    pub rail: u8,
    /// The interface.
    pub interface: Interface,
    /// Secret of the job.
    pub secret: [u8; 32],
    /// Which links are encrypted.
    pub encrypt: Policy,
}

/// A rail over a network interface; a driver implements this trait in order to be registered.
pub trait OverInterface: Driver + Sized + 'static {
    /// Name of the driver, and prefix of its rails' names; for a driver with variants, prefix of their
    /// names.
    const NAME: &'static str;

    /// Opens a rail of the driver with this name.
    ///
    /// # Errors
    /// The interface is gone, the driver does not support it, or this process may not use it.
    fn open_over(name: &'static str, place: Place) -> Result<Self, DriverError>;

    /// Returns why this process cannot open rails of the driver with this name, with the remedy; none if no
    /// obstacle is known.
    fn hindrance(name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Returns which features are missing on rails of the driver with this name, and why; none if all are
    /// present.
    fn lack(name: &str) -> Option<String> {
        let _ = name;
        None
    }
}

/// A registered driver.
#[derive(Clone, Copy)]
pub struct Network {
    name: &'static str,
    open: fn(&'static str, Place, &Layers) -> Result<Layered, DriverError>,
    hindrance: fn(&str) -> Option<String>,
    lack: fn(&str) -> Option<String>,
}

impl Network {
    /// All drivers, the default first.
    pub const ALL: &'static [Network] = crate::NETWORKS;

    /// Registers the driver of this rail type.
    pub(crate) const fn of<R: OverInterface>() -> Network {
        Network::variant::<R>(R::NAME)
    }

    /// Registers a variant of the driver of this rail type under a name of its own.
    pub(crate) const fn variant<R: OverInterface>(name: &'static str) -> Network {
        Network {
            name,
            open: |name, place, layers| Ok(layers.around(R::open_over(name, place)?)),
            hindrance: R::hindrance,
            lack: R::lack,
        }
    }

    /// Name of the driver, with which the names of its rails begin.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Opens a rail and wraps it in layers.
    ///
    /// # Errors
    /// Those of [`OverInterface::open_over`].
    pub fn open(self, place: Place, layers: &Layers) -> Result<Layered, DriverError> {
        (self.open)(self.name, place, layers)
    }

    /// Returns why this process cannot open rails, with the remedy; none if no obstacle is known.
    pub fn hindrance(self) -> Option<String> {
        (self.hindrance)(self.name)
    }

    /// Returns which features are missing on rails that this process can open, and why; none if all are
    /// present.
    pub fn lack(self) -> Option<String> {
        (self.lack)(self.name)
    }

    /// Finds a driver by name. A suffix behind a semicolon is ignored: it names the utility provider by
    /// which libfabric makes a provider reliable (`ofi:tcp;ofi_rxm`), and each provider has only one.
    ///
    /// # Errors
    /// No driver has this name; the text lists the names.
    pub fn named(name: &str) -> Result<Network, String> {
        let short = name.split_once(';').map_or(name, |(short, _)| short);
        let found = Network::ALL.iter().find(|network| network.name == short).copied();
        found.ok_or_else(|| {
            let names: Vec<&str> = Network::ALL.iter().map(|network| network.name).collect();
            format!("'{name}' is no driver for interfaces (there are: {})", names.join(", "))
        })
    }

    /// Checks that no driver is named twice: a second rail over the same interface adds no bandwidth.
    ///
    /// # Errors
    /// The text names a driver that occurs twice.
    pub fn all_different(drivers: &[Network]) -> Result<(), String> {
        let again = drivers.iter().enumerate().find(|(place, driver)| drivers[..*place].contains(driver));
        again.map_or(Ok(()), |(_, driver)| Err(format!("{} is named twice; once is enough", driver.name)))
    }
}

impl PartialEq for Network {
    fn eq(&self, other: &Network) -> bool {
        self.name == other.name
    }
}

impl Eq for Network {}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_lead_to_their_drivers() {
        Network::all_different(Network::ALL).unwrap();
        for network in Network::ALL {
            assert_eq!(Network::named(network.name), Ok(*network));
        }
        assert_eq!(
            Network::named("ucp").unwrap_err(),
            "'ucp' is no driver for interfaces (there are: tcp, udp, packet, verbs, ofi:tcp, ofi:shm, \
             ofi:udp, ofi:sockets, ofi:verbs, ofi:efa, ofi:cxi, ofi:psm2, ofi:psm3, ofi:opx)"
        );
        assert_eq!(Network::named("ofi:tcp;ofi_rxm"), Network::named("ofi:tcp"));
    }
}
