//! Authentication of processes that open a link: nonces and MACs keyed with the secret of the job, for
//! every driver that connects over a network. This module computes values only; it has no socket and no
//! clock.

use nmad_wire::{Control, Hello, Proof, Welcome};

/// Data that both sides share after hello and welcome. The MACs cover all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The hello of the connecting side.
    pub hello: Hello,
    /// Number of the answering side's rail.
    pub rail: u8,
    /// Nonce of the answering side.
    pub nonce: [u8; 32],
}

/// Returns the hello with its MAC filled in, which shows that its sender knows the job's secret.
///
/// The accepting side checks the MAC before it stores anything about the sender. A replayed hello passes
/// this check but opens no link, which takes [`Ends::proof`].
pub fn sealed(hello: Hello, secret: &[u8; 32]) -> Hello {
    Hello { mac: *hello_mac(&hello, secret).as_bytes(), ..hello }
}

/// Returns whether the sender of a hello knows the secret.
pub fn is_sealed(hello: &Hello, secret: &[u8; 32]) -> bool {
    // `blake3::Hash` compares in constant time.
    hello_mac(hello, secret) == hello.mac
}

fn hello_mac(hello: &Hello, secret: &[u8; 32]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(b"NewMadeleine link, hello");
    hasher.update(&[nmad_wire::VERSION, hello.rail]);
    hasher.update(&hello.from.to_le_bytes());
    hasher.update(&hello.to.to_le_bytes());
    hasher.update(&hello.nonce);
    hasher.finalize()
}

/// The side that computes a MAC. It is part of the MAC, so that one side's answer cannot be reflected as
/// the other side's proof.
#[derive(Debug, Clone, Copy)]
enum Side {
    Answering,
    Connecting,
}

impl Ends {
    /// The welcome message: the answer to a hello.
    pub fn welcome(&self, secret: &[u8; 32]) -> Control<'static> {
        let mac = self.mac(secret, Side::Answering).into();
        Control::Welcome(Welcome { rail: self.rail, nonce: self.nonce, mac })
    }

    /// The proof: the last message of the handshake.
    pub fn proof(&self, secret: &[u8; 32]) -> Control<'static> {
        Control::Proof(Proof { mac: self.mac(secret, Side::Connecting).into() })
    }

    /// Checks a welcome; none if its sender does not know the secret.
    pub fn from_welcome(hello: Hello, welcome: &Welcome, secret: &[u8; 32]) -> Option<Ends> {
        let ends = Ends { hello, rail: welcome.rail, nonce: welcome.nonce };
        // `blake3::Hash` compares in constant time.
        (ends.mac(secret, Side::Answering) == welcome.mac).then_some(ends)
    }

    /// Returns whether the connecting side has proved that it knows the secret.
    pub fn proves(&self, proof: &Proof, secret: &[u8; 32]) -> bool {
        self.mac(secret, Side::Connecting) == proof.mac
    }

    /// MAC of a message that follows the handshake, bound to this link and to the sending side;
    /// `is_attempt`: the sender is the connecting side.
    pub fn seal(&self, secret: &[u8; 32], is_attempt: bool, message: &[u8]) -> blake3::Hash {
        let side = if is_attempt { Side::Connecting } else { Side::Answering };
        let mut hasher = blake3::Hasher::new_keyed(secret);
        hasher.update(b"NewMadeleine link, what follows");
        hasher.update(self.mac(secret, side).as_bytes());
        hasher.update(message);
        hasher.finalize()
    }

    fn mac(&self, secret: &[u8; 32], side: Side) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(secret);
        hasher.update(match side {
            Side::Answering => b"NewMadeleine link, answering side ",
            Side::Connecting => b"NewMadeleine link, connecting side",
        });
        hasher.update(&[nmad_wire::VERSION, self.hello.rail, self.rail]);
        hasher.update(&self.hello.from.to_le_bytes());
        hasher.update(&self.hello.to.to_le_bytes());
        hasher.update(&self.hello.nonce);
        hasher.update(&self.nonce);
        hasher.finalize()
    }
}

/// Returns 32 random bytes from the system.
///
/// # Panics
/// If the system has no random source; no supported system lacks one.
pub fn nonce() -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut have = 0;
    while have < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[have..], rustix::rand::GetRandomFlags::empty()) {
            Ok(len) => have += len,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => panic!("no random bytes from the system: {e}"),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        let hello = sealed(Hello { from: 3, to: 1, rail: 0, nonce: [7; 32], mac: [0; 32] }, &[1; 32]);
        Ends { hello, rail: 2, nonce: [9; 32] }
    }

    #[test]
    fn the_same_secret_opens_and_another_does_not() {
        let (ours, theirs) = ([1; 32], [2; 32]);
        let Control::Welcome(welcome) = ends().welcome(&ours) else { panic!("not a welcome") };
        assert_eq!(Ends::from_welcome(ends().hello, &welcome, &ours), Some(ends()));
        assert_eq!(Ends::from_welcome(ends().hello, &welcome, &theirs), None);
        let Control::Proof(proof) = ends().proof(&ours) else { panic!("not a proof") };
        assert!(ends().proves(&proof, &ours) && !ends().proves(&proof, &theirs));
    }

    #[test]
    fn a_hello_is_sealed_with_the_secret_and_every_field_counts() {
        let hello = ends().hello;
        assert!(is_sealed(&hello, &[1; 32]) && !is_sealed(&hello, &[2; 32]));
        let changed = [
            Hello { from: 4, ..hello },
            Hello { to: 4, ..hello },
            Hello { rail: 4, ..hello },
            Hello { nonce: [8; 32], ..hello },
            Hello { mac: [0; 32], ..hello },
        ];
        assert!(changed.iter().all(|hello| !is_sealed(hello, &[1; 32])));
    }

    #[test]
    fn each_field_changes_the_mac_and_no_mac_serves_twice() {
        let secret = [1; 32];
        let mut all = vec![ends(); 6];
        all[0].hello.from = 4;
        all[1].hello.to = 4;
        all[2].hello.rail = 4;
        all[3].hello.nonce[31] = 4;
        all[4].nonce[0] = 4;
        let mut macs: Vec<[u8; 32]> = all.iter().map(|e| e.mac(&secret, Side::Answering).into()).collect();
        macs.push(ends().mac(&secret, Side::Connecting).into());
        macs.sort_unstable();
        macs.dedup();
        assert_eq!(macs.len(), 7);
    }
}
