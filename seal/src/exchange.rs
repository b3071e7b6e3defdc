//! The key exchange of one link: X25519 (RFC 7748); each scalar is used for one link only.

use x25519_dalek::{PublicKey, StaticSecret};

/// The private key of one side; it is erased when it is dropped.
#[derive(Clone)]
pub struct Scalar(StaticSecret);

impl Scalar {
    /// Makes a scalar of random bytes.
    pub fn new(random: [u8; 32]) -> Scalar {
        Scalar(StaticSecret::from(random))
    }

    /// The public key, for the peer.
    pub fn public(&self) -> [u8; 32] {
        PublicKey::from(&self.0).to_bytes()
    }

    /// Returns the shared value of both sides. `None` if it is zero, which a few public keys give with every
    /// scalar; no correct peer sends such a key.
    pub fn shared(&self, theirs: &[u8; 32]) -> Option<[u8; 32]> {
        let shared = self.0.diffie_hellman(&PublicKey::from(*theirs));
        shared.was_contributory().then(|| shared.to_bytes())
    }
}

impl std::fmt::Debug for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scalar")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> [u8; 32] {
        std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal"))
    }

    /// The vectors of RFC 7748, section 6.1.
    #[test]
    fn both_sides_share_what_the_standard_says() {
        let a = Scalar::new(bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"));
        let b = Scalar::new(bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
        assert_eq!(a.public(), bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
        assert_eq!(b.public(), bytes("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
        let both = bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        assert_eq!([a.shared(&b.public()), b.shared(&a.public())], [Some(both); 2]);
    }

    #[test]
    fn a_key_that_leads_to_zero_is_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        let scalar = Scalar::new([7; 32]);
        assert_eq!([scalar.shared(&[0; 32]), scalar.shared(&one)], [None; 2]);
    }
}
