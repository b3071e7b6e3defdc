//! Proofs of knowledge of a job's secret: each side proves it for random numbers of the other side, and
//! neither sends the secret.

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
    hasher.update(&numbers.agent).update(&numbers.head).update(&numbers.node.to_le_bytes());
    *hasher.finalize().as_bytes()
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
        let numbers = Numbers { agent: [1; 32], head: [2; 32], node: 5 };
        let proof = prove(&[9; 32], Side::Agent, &numbers);
        assert!(is_proven(&[9; 32], Side::Agent, &numbers, &proof));
        assert!(!is_proven(&[8; 32], Side::Agent, &numbers, &proof));
        assert!(!is_proven(&[9; 32], Side::Head, &numbers, &proof));
        for other in [
            Numbers { agent: [3; 32], ..numbers },
            Numbers { head: [3; 32], ..numbers },
            Numbers { node: 6, ..numbers },
        ] {
            assert!(!is_proven(&[9; 32], Side::Agent, &other, &proof));
        }
    }
}
