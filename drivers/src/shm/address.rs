//! Address of a rail: the name of its listening socket, and the scope in which that name is valid.

use std::fmt;
use std::str::FromStr;

/// The listening socket of a rail. It is an abstract socket, whose name disappears with its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Boot and network namespace in which the name is valid.
    pub place: String,
    /// The name of the socket.
    pub name: String,
}

impl Address {
    /// A new address with a random name, which no other process can guess or take in advance.
    pub fn fresh(nonce: &[u8; 32]) -> Address {
        let hex: String = nonce[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Address { place: here(), name: format!("nmad-{hex}") }
    }
}

/// Returns the identifier of the running kernel (its boot id), which all processes of a machine have in
/// common; `None` if the system hides it.
pub fn kernel() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// Identifies the scope of abstract names: processes with equal results can connect to each other.
fn here() -> String {
    let boot = kernel().unwrap_or_default();
    let boot: String = boot.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    let namespace = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let namespace: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{boot}.{namespace}")
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}/{}", self.place, self.name)
    }
}

impl FromStr for Address {
    type Err = ();

    fn from_str(text: &str) -> Result<Address, ()> {
        let (place, name) = text.strip_prefix('@').and_then(|rest| rest.split_once('/')).ok_or(())?;
        if !name.starts_with("nmad-") || name.len() > 64 {
            return Err(());
        }
        Ok(Address { place: place.into(), name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_text_and_others_are_refused() {
        let address = Address::fresh(&[7; 32]);
        assert_eq!(address.to_string().parse(), Ok(address.clone()));
        assert!(!address.to_string().contains([' ', ';', '=']));
        for wrong in ["", "10.0.0.1/24:5000", "@a", "@a/b"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
