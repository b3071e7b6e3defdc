//! Encryption and integrity of connections between hosts: keys, and the cipher of one direction. Drivers
//! and the launcher use this crate; of this repository it uses only `wire`.
//!
//! [`exchange`] and [`Keys`] derive the keys of a connection from an exchange of X25519 and the secret of
//! the job, while it opens. [`Sealer`] and [`Unsealer`] are the two ends of one direction: the number of
//! a record or datagram determines its nonce and its key. The caller decides how data is divided into
//! records, and which bytes are authenticated with each. This crate has no socket; it reads a clock only
//! to compare the speed of the ciphers, which are those of `ring`. `docs/wire.md` describes the format,
//! `SECURITY.md` the protection.
#![forbid(unsafe_code)]

mod choice;
mod direction;
pub mod exchange;
mod expand;
mod keys;

pub use choice::{agreed, preferred};
pub use direction::{Broken, EPOCH, Number, Sealer, TAG, Unsealer};
pub use keys::Keys;

use std::net::IpAddr;
use std::str::FromStr;

/// Which links are encrypted: the setting `NMAD_ENCRYPT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// None; a peer that encrypts is refused.
    Off,
    /// Links to peers in another subnet or at a public address, and links that the peer wants encrypted.
    #[default]
    Auto,
    /// All links over an interface; a peer that does not encrypt is refused.
    On,
}

impl Policy {
    /// The name of the policy in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Off => "off",
            Policy::Auto => "auto",
            Policy::On => "on",
        }
    }

    /// Returns whether this side encrypts the links of a rail with this address. It does not consider other
    /// subnets, which a rail reaches only if the program has asked for routed links.
    pub fn covers(self, address: IpAddr) -> bool {
        self.asks(|| is_public(address))
    }

    /// Returns whether this side asks for encryption of a link; `is_far`: its peer is in another subnet or
    /// at a public address.
    pub fn asks(self, is_far: impl FnOnce() -> bool) -> bool {
        match self {
            Policy::Off => false,
            Policy::Auto => is_far(),
            Policy::On => true,
        }
    }
}

/// Returns whether an address is public: not private, link-local, loopback or shared by a provider
/// (100.64.0.0/10).
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let is_shared = first == 100 && second & 0xc0 == 64;
            !(v4.is_private() || v4.is_link_local() || v4.is_loopback() || is_shared)
        }
        IpAddr::V6(v6) => !(v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_loopback()),
    }
}

/// The error for text that names no policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPolicy;

impl FromStr for Policy {
    type Err = NoPolicy;

    fn from_str(name: &str) -> Result<Policy, NoPolicy> {
        [Policy::Off, Policy::Auto, Policy::On].into_iter().find(|one| one.name() == name).ok_or(NoPolicy)
    }
}
