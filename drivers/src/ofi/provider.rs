//! Table of the supported providers, with the properties that libfabric does not report.
//!
//! Properties that libfabric reports (registration modes, lengths, the descriptor for sleepers) are queried
//! instead.

/// A supported provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Provider {
    /// Name of the driver: `ofi:` and the short name of the provider.
    pub(super) driver: &'static str,
    /// Name in libfabric, with the utility provider that makes it reliable.
    pub(super) name: &'static str,
    /// How it relates to an interface of this machine.
    pub(super) bound: Bound,
    /// Messages are sent without a system call.
    pub(super) is_direct: bool,
    /// Reads of a peer's memory complete without the peer's participation, so they end soon in any case.
    /// Otherwise data travels in messages, because a receive region could not be closed while the peer
    /// computes.
    pub(super) reads: bool,
}

/// How a provider relates to an interface of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// Its endpoints use the address of the interface.
    ToAddress,
    /// It has adapters of its own, of which the first is used. The interface is only used to open links.
    ToNothing,
}

/// An entry that is bound to the address of an interface.
const fn on_address(driver: &'static str, name: &'static str) -> Provider {
    Provider { driver, name, bound: Bound::ToAddress, is_direct: false, reads: true }
}

/// An entry with adapters of its own, which send messages without a system call.
const fn on_adapter(driver: &'static str, name: &'static str) -> Provider {
    Provider { driver, name, bound: Bound::ToNothing, is_direct: true, reads: true }
}

/// The supported providers. The tests run the first four; the entries of the others follow the providers'
/// pages (fi_verbs(7), fi_efa(7), fi_cxi(7), fi_psm2(7), fi_psm3(7), fi_opx(7)).
pub(super) const PROVIDERS: &[Provider] = &[
    Provider { reads: false, ..on_address("ofi:tcp", "tcp;ofi_rxm") },
    // Its adapter is virtual: memory shared by the processes of a node.
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
