//! The secret of a job: 256 bits that only its ranks know, and the text form they travel in.

use std::fmt;

use rustix::rand::{GetRandomFlags, getrandom};

use crate::LaunchError;

/// The variable in which our launcher passes the secret to its ranks, in hexadecimal.
pub const VARIABLE: &str = nmad_words::setting::SECRET.name;

/// 256 bits from the system's randomness. `Debug` does not show them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A fresh secret.
    ///
    /// # Errors
    /// [`LaunchError::System`] if the system gives no randomness.
    pub fn random() -> Result<Secret, LaunchError> {
        let mut bytes = [0; 32];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())
                .map_err(LaunchError::system("cannot make the secret of the job (getrandom)"))?;
        }
        Ok(Secret(bytes))
    }

    /// Makes a secret from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Returns 64 lower-case hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads 64 hexadecimal digits; `None` for anything else.
    pub fn from_hex(text: &str) -> Option<Secret> {
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Secret(bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_its_text_form() {
        let secret = Secret::random().unwrap();
        assert_eq!(Secret::from_hex(&secret.to_hex()), Some(secret));
        assert_ne!(secret, Secret::random().unwrap());
    }

    #[test]
    fn other_text_is_no_secret() {
        for text in ["", "00", &"g".repeat(64), &"é".repeat(32), &"0".repeat(65)] {
            assert_eq!(Secret::from_hex(text), None, "{text}");
        }
    }
}
