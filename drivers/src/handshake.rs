//! Authentication of processes that open a link: nonces and MACs keyed with the secret of the job, for
//! every driver that connects over a network. This module computes values only; it has no socket and no
//! clock.

use nmad_seal::Keys;
use nmad_seal::exchange::Scalar;
use nmad_wire::{Control, Hello, Offer, Proof, Welcome};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Data that both sides share after hello and welcome. The MACs cover all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The hello of the connecting side.
    pub hello: Hello,
    /// Number of the answering side's rail.
    pub rail: u8,
    /// Nonce of the answering side.
    pub nonce: [u8; 32],
    /// The answering side's offer, if the hello has one, so that the link is encrypted.
    pub offer: Option<Offer>,
}

/// Random bytes for one conversation.
#[derive(Debug)]
pub struct Fresh {
    /// The nonce of this side.
    pub nonce: [u8; 32],
    /// The scalar of this side's key exchange; used only if the link is encrypted.
    pub scalar: Scalar,
}

impl Fresh {
    /// Takes random bytes from the system.
    ///
    /// # Errors
    /// The system gives none; the text says that no links can be opened.
    pub fn new() -> Result<Fresh, String> {
        let random =
            || random().map_err(|e| format!("cannot open links: no random bytes from the system: {e}"));
        Ok(Fresh { nonce: random()?, scalar: Scalar::new(random()?) })
    }
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
    if let Some(Offer { cipher, key }) = hello.offer {
        hasher.update(&[cipher as u8]);
        hasher.update(&key);
    }
    hasher.finalize()
}

/// The side that computes a MAC. It is part of the MAC, so that one side's answer cannot be reflected as
/// the other side's proof.
#[derive(Debug, Clone, Copy)]
enum Side {
    Answering,
    Connecting,
}

/// The MACs of welcome and proof are keyed with the secret of the job, or, if the link is encrypted, with the
/// confirmation key that is derived from the secret and the key exchange ([`nmad_seal::Keys`]).
impl Ends {
    /// Returns the data that both sides share after this welcome.
    pub fn new(hello: Hello, welcome: &Welcome) -> Ends {
        Ends { hello, rail: welcome.rail, nonce: welcome.nonce, offer: welcome.offer }
    }

    /// The welcome message: the answer to a hello.
    pub fn welcome(&self, key: &[u8; 32]) -> Control<'static> {
        let mac = self.mac(key, Side::Answering).into();
        Control::Welcome(Welcome { rail: self.rail, nonce: self.nonce, offer: self.offer, mac })
    }

    /// The proof: the last message of the handshake.
    pub fn proof(&self, key: &[u8; 32]) -> Control<'static> {
        Control::Proof(Proof { mac: self.mac(key, Side::Connecting).into() })
    }

    /// Returns whether the answering side has proved that it knows the key.
    pub fn welcomes(&self, welcome: &Welcome, key: &[u8; 32]) -> bool {
        // `blake3::Hash` compares in constant time.
        self.mac(key, Side::Answering) == welcome.mac
    }

    /// Returns whether the connecting side has proved that it knows the key.
    pub fn proves(&self, proof: &Proof, key: &[u8; 32]) -> bool {
        self.mac(key, Side::Connecting) == proof.mac
    }

    /// Derives the keys of an encrypted link from the secret of the job, this side's scalar and the public
    /// key of the other side. `None` if that public key is invalid, or the welcome has no offer.
    pub fn keys(&self, secret: &[u8; 32], scalar: &Scalar, theirs: &[u8; 32]) -> Option<Keys> {
        Keys::derive(self.offer?.cipher, secret, (scalar, theirs), &self.transcript())
    }

    /// Returns all fields of hello and welcome except their MACs, in a fixed order and each with a fixed
    /// length.
    pub fn transcript(&self) -> Vec<u8> {
        let mut text = vec![nmad_wire::VERSION, self.hello.rail, self.rail];
        text.extend_from_slice(&self.hello.from.to_le_bytes());
        text.extend_from_slice(&self.hello.to.to_le_bytes());
        text.extend_from_slice(&self.hello.nonce);
        text.extend_from_slice(&self.nonce);
        for Offer { cipher, key } in self.hello.offer.iter().chain(&self.offer) {
            text.push(*cipher as u8);
            text.extend_from_slice(key);
        }
        text
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
        hasher.update(&self.transcript());
        hasher.finalize()
    }
}

/// Returns 32 random bytes from the system.
///
/// # Errors
/// The system has none, for example because it forbids the call.
pub fn random() -> Result<[u8; 32], Errno> {
    let mut bytes = [0; 32];
    let mut have = 0;
    while have < bytes.len() {
        match getrandom(&mut bytes[have..], GetRandomFlags::empty()) {
            Ok(len) => have += len,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_wire::Cipher;

    const OFFER: Offer = Offer { cipher: Cipher::Aes256Gcm, key: [5; 32] };

    fn ends() -> Ends {
        let hello =
            sealed(Hello { from: 3, to: 1, rail: 0, nonce: [7; 32], offer: None, mac: [0; 32] }, &[1; 32]);
        Ends { hello, rail: 2, nonce: [9; 32], offer: None }
    }

    #[test]
    fn the_same_secret_opens_and_another_does_not() {
        let (ours, theirs) = ([1; 32], [2; 32]);
        let Control::Welcome(welcome) = ends().welcome(&ours) else { panic!("not a welcome") };
        assert_eq!(Ends::new(ends().hello, &welcome), ends());
        assert!(ends().welcomes(&welcome, &ours) && !ends().welcomes(&welcome, &theirs));
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
            Hello { offer: Some(OFFER), ..hello },
            Hello { mac: [0; 32], ..hello },
        ];
        assert!(changed.iter().all(|hello| !is_sealed(hello, &[1; 32])));
    }

    #[test]
    fn each_field_changes_the_mac_and_no_mac_serves_twice() {
        let secret = [1; 32];
        let mut all = vec![ends(); 10];
        all[0].hello.from = 4;
        all[1].hello.to = 4;
        all[2].hello.rail = 4;
        all[3].hello.nonce[31] = 4;
        all[4].nonce[0] = 4;
        let other = Offer { cipher: Cipher::ChaCha20Poly1305, ..OFFER };
        let keyed = Offer { key: [6; 32], ..OFFER };
        for (at, (hello, welcome)) in
            [(OFFER, OFFER), (other, OFFER), (OFFER, other), (keyed, OFFER)].into_iter().enumerate()
        {
            (all[5 + at].hello.offer, all[5 + at].offer) = (Some(hello), Some(welcome));
        }
        let mut macs: Vec<[u8; 32]> = all.iter().map(|e| e.mac(&secret, Side::Answering).into()).collect();
        macs.push(ends().mac(&secret, Side::Connecting).into());
        macs.sort_unstable();
        macs.dedup();
        assert_eq!(macs.len(), 11);
    }

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal"))
    }

    /// The vectors of `docs/wire.md`, which another implementation has computed; the scalars are those of
    /// RFC 7748, section 6.1.
    #[test]
    fn the_keys_of_a_link_are_those_of_the_documentation() {
        let secret = std::array::from_fn(|at| at as u8);
        let scalars = [
            "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        ]
        .map(|hex| Scalar::new(bytes(hex)));
        let [ours, theirs] =
            scalars.each_ref().map(|one| Offer { cipher: Cipher::ChaCha20Poly1305, key: one.public() });
        let hello = Hello { from: 2, to: 3, rail: 0, nonce: [1; 32], offer: Some(ours), mac: [0; 32] };
        let ends = Ends { hello, rail: 1, nonce: [2; 32], offer: Some(theirs) };
        let connecting = ends.keys(&secret, &scalars[0], &theirs.key).expect("a valid key");
        let answering = ends.keys(&secret, &scalars[1], &ours.key).expect("a valid key");
        assert!(connecting == answering, "both sides have the same");
        let confirmation = bytes("62aee137d94a803120493b041c8ef33ea5debcce6aebed9980c0f63b5bd10ef1");
        assert_eq!(*connecting.confirmation(), confirmation);
        let (mut sealer, _) = connecting.directions(true);
        sealer.seal(&[], &mut []).expect("record 0");
        let (head, mut data) = (5_u32.to_le_bytes(), *b"hello");
        let tag = sealer.seal(&head, &mut data).expect("record 1");
        assert_eq!([&data[..], &tag].concat(), bytes::<21>("44aa33c7160b6ee920606a5480042f691ea30c4b03"));
        let (_, mut unsealer) = answering.directions(false);
        let mut record = [&data[..], &tag].concat();
        assert_eq!(unsealer.open(1, &head, &mut record).expect("right"), b"hello");
        let other = ends.keys(&[7; 32], &scalars[0], &theirs.key).expect("a valid key");
        assert!(other != connecting, "the secret of the job counts");
    }
}
