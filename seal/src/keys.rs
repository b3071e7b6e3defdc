//! The key schedule of a link.
//!
//! HKDF (RFC 5869) with SHA-256: its salt is the secret of the job, its input the shared value of X25519, and
//! its info text contains all fields that both sides have sent. A side without the secret of the job derives
//! other keys. An attacker who learns the secret later still lacks the scalars, which are erased (forward
//! secrecy).

use super::direction::{Sealer, Unsealer};
use super::exchange::Scalar;
use super::expand::filled;
use nmad_wire::Cipher;
use ring::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroize;

/// The keys of a link.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    cipher: Cipher,
    /// In a box, so that moving the keys leaves no copy of them in memory.
    secrets: Box<Secrets>,
}

#[derive(Clone, PartialEq, Eq)]
struct Secrets {
    connecting: [u8; 32],
    answering: [u8; 32],
    confirmation: [u8; 32],
}

impl Keys {
    /// Derives the keys of a connection from the secret of the job, this side's scalar and the other side's
    /// public key; `None` if that public key is invalid ([`Scalar::shared`]). `text` contains all fields that
    /// both sides have sent, including the public keys.
    pub fn derive(
        cipher: Cipher,
        secret: &[u8; 32],
        (scalar, theirs): (&Scalar, &[u8; 32]),
        text: &[u8],
    ) -> Option<Keys> {
        Some(Keys::of(cipher, secret, scalar.shared(theirs)?, text))
    }

    fn of(cipher: Cipher, secret: &[u8; 32], mut shared: [u8; 32], text: &[u8]) -> Keys {
        let prk = Salt::new(HKDF_SHA256, secret).extract(&shared);
        shared.zeroize();
        let secrets = Box::new(Secrets {
            connecting: filled(&prk, b"NewMadeleine seal, connecting side", text),
            answering: filled(&prk, b"NewMadeleine seal, answering side", text),
            confirmation: filled(&prk, b"NewMadeleine seal, confirmation", text),
        });
        Keys { cipher, secrets }
    }

    /// The cipher of the link.
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// The key of the MACs with which each side proves that it has derived the same keys.
    pub fn confirmation(&self) -> &[u8; 32] {
        &self.secrets.confirmation
    }

    /// Returns the ciphers for sending and for receiving; `is_attempt`: this side opened the connection. Must
    /// be called once for each connection: the numbers of a second sealer would begin at 0 under the same
    /// key.
    pub fn directions(&self, is_attempt: bool) -> (Sealer, Unsealer) {
        let Secrets { connecting, answering, .. } = *self.secrets;
        let (ours, theirs) = if is_attempt { (connecting, answering) } else { (answering, connecting) };
        (Sealer::new(self.cipher, ours), Unsealer::new(self.cipher, theirs))
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        let Secrets { connecting, answering, confirmation } = self;
        [connecting, answering, confirmation].into_iter().for_each(Zeroize::zeroize);
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({:?})", self.cipher)
    }
}
