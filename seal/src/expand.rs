//! Derivation of bytes from a secret: HKDF-Expand (RFC 5869).

use ring::hkdf::{HKDF_SHA256, KeyType, Prk};

/// Number of bytes to derive.
struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives bytes from a secret.
pub fn expand<const N: usize>(secret: &[u8; 32], label: &[u8], text: &[u8]) -> [u8; N] {
    filled(&Prk::new_less_safe(HKDF_SHA256, secret), label, text)
}

/// Derives bytes from the output of HKDF-Extract.
pub fn filled<const N: usize>(prk: &Prk, label: &[u8], text: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let info = [label, text];
    let Ok(()) = prk.expand(&info, Len(N)).and_then(|okm| okm.fill(&mut bytes)) else {
        unreachable!("HKDF gives up to 8160 bytes")
    };
    bytes
}
