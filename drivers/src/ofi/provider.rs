//! The providers that are asked for, and what is special about each.
//!
//! What libfabric tells of a provider by itself (registration modes, lengths, the descriptor for sleepers) is
//! taken from there. The rest stands in this table.

/// How a provider is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Provider {
    /// Name of the driver: `ofi:` and the name of the provider in short.
    pub(super) driver: &'static str,
    /// Name as libfabric has it, with the layer that makes it reliable.
    pub(super) name: &'static str,
    /// What an interface of this machine is to it.
    pub(super) bound: Bound,
    /// A message leaves without a system call.
    pub(super) is_direct: bool,
    /// Reads of a peer's memory end without the peer's help, so that they end soon whatever it does.
    /// Otherwise data travels in messages: a receive region could not be closed while the peer computes.
    pub(super) reads: bool,
}

/// What an interface of this machine is to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// Its endpoints have the address of the interface.
    ToAddress,
    /// It has adapters of its own, of which the first is taken. Links open over the interface.
    ToNothing,
}

/// An entry that is bound to the address of an interface.
const fn on_address(driver: &'static str, name: &'static str) -> Provider {
    Provider { driver, name, bound: Bound::ToAddress, is_direct: false, reads: true }
}

/// An entry with adapters of its own, which need no system call for a message.
const fn on_adapter(driver: &'static str, name: &'static str) -> Provider {
    Provider { driver, name, bound: Bound::ToNothing, is_direct: true, reads: true }
}

/// Those that are known. The first four are run by the tests; of the others the entry follows the provider's
/// page (fi_verbs(7), fi_efa(7), fi_cxi(7), fi_psm2(7), fi_psm3(7), fi_opx(7)).
pub(super) const PROVIDERS: &[Provider] = &[
    Provider { reads: false, ..on_address("ofi:tcp", "tcp;ofi_rxm") },
    // No real adapter, but memory that the processes of a node share.
    Provider { is_direct: true, ..on_adapter("ofi:shm", "shm") },
    Provider { reads: false, ..on_address("ofi:udp", "udp;ofi_rxd") },
    on_address("ofi:sockets", "sockets"),
    Provider { is_direct: true, ..on_address("ofi:verbs", "verbs;ofi_rxm") },
    on_adapter("ofi:efa", "efa"),
    on_adapter("ofi:cxi", "cxi"),
    on_adapter("ofi:psm2", "psm2"),
    on_adapter("ofi:psm3", "psm3"),
    on_adapter("ofi:opx", "opx"),
];

/// The provider of a driver's name.
pub(super) fn of(driver: &str) -> Option<Provider> {
    PROVIDERS.iter().find(|provider| provider.driver == driver).copied()
}
