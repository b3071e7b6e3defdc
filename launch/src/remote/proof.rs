//! Proofs of knowledge of a job's secret: each side proves it for random numbers of the other side, and
//! neither sends the secret. The numbers include public keys, from which the keys for all later messages are
//! derived.

use nmad_seal::Keys;
use nmad_seal::exchange::Scalar;
use nmad_wire::Cipher;

/// The proving side. A proof of one side is invalid for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The launcher.
    Head,
    /// An agent.
    Agent,
}

/// The numbers of one connection, and its host.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Chosen by the agent.
    pub agent: [u8; 32],
    /// Chosen by the head.
    pub head: [u8; 32],
    /// Public keys of the agent and of the head.
    pub keys: [[u8; 32]; 2],
    /// The agent's host.
    pub node: u32,
}

/// Returns the proof of `side`: a keyed BLAKE3 hash.
pub fn prove(secret: &[u8; 32], side: Side, numbers: &Numbers) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(match side {
        Side::Head => b"nmad launch: head",
        Side::Agent => b"nmad launch: agent",
    });
    hasher.update(&numbers.text());
    *hasher.finalize().as_bytes()
}

impl Numbers {
    /// Returns the bytes that proofs and keys cover.
    fn text(&self) -> Vec<u8> {
        let Numbers { agent, head, keys: [ours, theirs], node } = self;
        [&agent[..], head, ours, theirs, &node.to_le_bytes()].concat()
    }

    /// Derives the keys of the connection from the scalar of `side`; `None` if the other side's public key is
    /// invalid. The cipher is fixed: messages are short, so a faster one is not worth a negotiation.
    pub fn derive(&self, secret: &[u8; 32], side: Side, scalar: &Scalar) -> Option<Keys> {
        let theirs = match side {
            Side::Agent => &self.keys[1],
            Side::Head => &self.keys[0],
        };
        Keys::derive(Cipher::ChaCha20Poly1305, secret, (scalar, theirs), &self.text())
    }
}

/// Checks a proof in constant time.
pub fn is_proven(secret: &[u8; 32], side: Side, numbers: &Numbers, proof: &[u8; 32]) -> bool {
    blake3::Hash::from(prove(secret, side, numbers)) == blake3::Hash::from(*proof)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_for_one_secret_side_and_connection() {
        let numbers = Numbers { agent: [1; 32], head: [2; 32], keys: [[3; 32], [4; 32]], node: 5 };
        let proof = prove(&[9; 32], Side::Agent, &numbers);
        assert!(is_proven(&[9; 32], Side::Agent, &numbers, &proof));
        assert!(!is_proven(&[8; 32], Side::Agent, &numbers, &proof));
        assert!(!is_proven(&[9; 32], Side::Head, &numbers, &proof));
        for other in [
            Numbers { agent: [3; 32], ..numbers },
            Numbers { head: [3; 32], ..numbers },
            Numbers { node: 6, ..numbers },
            Numbers { keys: [[4; 32], [4; 32]], ..numbers },
            Numbers { keys: [[3; 32], [3; 32]], ..numbers },
        ] {
            assert!(!is_proven(&[9; 32], Side::Agent, &other, &proof));
        }
    }
}
