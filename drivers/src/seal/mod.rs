//! Encryption and integrity of links: keys, and the cipher of one direction.
//!
//! [`exchange`] and [`keys`] derive the keys of a link from an exchange of X25519 and the secret of the job,
//! while [`crate::opening`] opens it. [`Sealer`] and [`Unsealer`] are the two ends of one direction: each
//! record or datagram has a number, from which its nonce and its key follow. Networks decide what a record
//! is and what it authenticates beside its data. This module has no socket and no clock; the ciphers are
//! those of `ring`. `docs/wire.md` has the format, `SECURITY.md` what is protected.

mod choice;
mod direction;
pub mod exchange;
mod keys;

pub use choice::{agreed, preferred};
pub use direction::{Broken, Sealer, TAG, Unsealer};
pub use keys::Keys;

use crate::tcp::address::is_public;
use std::net::IpAddr;
use std::str::FromStr;

/// Which links are encrypted: the setting `NMAD_ENCRYPT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// None; a peer that encrypts is refused.
    Off,
    /// Those to peers in another subnet or at a public address, and those that the peer wants encrypted.
    #[default]
    Auto,
    /// All links over an interface; a peer that does not encrypt is refused.
    On,
}

impl Policy {
    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Off => "off",
            Policy::Auto => "auto",
            Policy::On => "on",
        }
    }

    /// Returns whether links of a rail at this address are encrypted, as far as this side decides it: rails
    /// reach other subnets only where a program has asked for that.
    pub fn covers(self, address: IpAddr) -> bool {
        match self {
            Policy::Off => false,
            Policy::Auto => is_public(address),
            Policy::On => true,
        }
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
