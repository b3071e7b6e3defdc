//! The drivers for interfaces: each registers itself in the list of the crate's root, and users name it.

use crate::around::layers::{Layered, Layers};
use crate::error::DriverError;
use crate::interface::Interface;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::Driver;

/// The data with which a driver opens a rail.
pub struct Place {
    /// This process.
    pub rank: PeerId,
    /// Number of the rail in it.
    pub rail: u8,
    /// The interface.
    pub interface: Interface,
    /// Secret of the job.
    pub secret: [u8; 32],
}

/// A rail over an interface; implementing it is what a driver owes to be registered.
pub trait OverInterface: Driver + Sized + 'static {
    /// Name of the driver, with which the names of its rails begin; of one that has variants, what their
    /// names begin with.
    const NAME: &'static str;

    /// Opens a rail of the driver of this name.
    ///
    /// # Errors
    /// The interface is gone, or is not for this driver, or this process may not use it.
    fn open_over(name: &'static str, place: Place) -> Result<Self, DriverError>;

    /// Why this process cannot open rails of the driver of this name, with the remedy; none: nothing is known
    /// against it.
    fn hindrance(name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// What this process has to do without on rails of the driver of this name, and why; none: of nothing.
    fn lack(name: &str) -> Option<String> {
        let _ = name;
        None
    }
}

/// A driver for interfaces.
#[derive(Clone, Copy)]
pub struct Network {
    name: &'static str,
    open: fn(&'static str, Place, &Layers) -> Result<Layered, DriverError>,
    hindrance: fn(&str) -> Option<String>,
    lack: fn(&str) -> Option<String>,
}

impl Network {
    /// All of them, the default first.
    pub const ALL: &'static [Network] = crate::NETWORKS;

    /// The driver of these rails.
    pub(crate) const fn of<R: OverInterface>() -> Network {
        Network::variant::<R>(R::NAME)
    }

    /// A variant of the driver of these rails, with a name of its own.
    pub(crate) const fn variant<R: OverInterface>(name: &'static str) -> Network {
        Network {
            name,
            open: |name, place, layers| Ok(layers.around(R::open_over(name, place)?)),
            hindrance: R::hindrance,
            lack: R::lack,
        }
    }

    /// Its name, with which names of rails begin.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Opens a rail with layers around it.
    ///
    /// # Errors
    /// As [`OverInterface::open_over`].
    pub fn open(self, place: Place, layers: &Layers) -> Result<Layered, DriverError> {
        (self.open)(self.name, place, layers)
    }

    /// Why this process cannot open rails, with the remedy; none: nothing is known against it.
    pub fn hindrance(self) -> Option<String> {
        (self.hindrance)(self.name)
    }

    /// What this process has to do without on rails that it can open, and why; none: of nothing.
    pub fn lack(self) -> Option<String> {
        (self.lack)(self.name)
    }

    /// The driver of this name. What a name has behind a semicolon says how libfabric makes a provider
    /// reliable (`ofi:tcp;ofi_rxm`), of which there is one way for each.
    ///
    /// # Errors
    /// There is none; the text lists the names.
    pub fn named(name: &str) -> Result<Network, String> {
        let short = name.split_once(';').map_or(name, |(short, _)| short);
        let found = Network::ALL.iter().find(|network| network.name == short).copied();
        found.ok_or_else(|| {
            let names: Vec<&str> = Network::ALL.iter().map(|network| network.name).collect();
            format!("'{name}' is no driver for interfaces (there are: {})", names.join(", "))
        })
    }

    /// Whether each is named once: a second rail over the same interface carries nothing more.
    ///
    /// # Errors
    /// One is named twice; the text names it.
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
