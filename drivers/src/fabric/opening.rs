//! Exchange of fabric addresses between the two sides of a link, over the connection of the handshake.
//!
//! | step | sent by | content |
//! |---|---|---|
//! | 1 | both | length, MAC, driver, token of the link, length of a slot, endpoint |
//! | 2 | both, when their endpoints are connected | one byte: messages can arrive now |
//!
//! The MAC is computed with the secret of the job and the nonces of the preceding handshake.

use super::adapter::Adapter;
use super::slots::SLOT;
use crate::connections::Failure;
use crate::handshake;
use crate::opening::{FailureKind, Opened};
use crate::tcp::opening::Exchange;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

/// Bytes of a MAC.
const MAC: usize = 32;
/// Longest message of the first step.
const LONGEST: usize = 1024;
/// The byte of the second step.
const READY: u8 = 0x52;

/// Content of the first step, behind the MAC.
struct Introduction<'a> {
    driver: &'a [u8],
    token: u64,
    slot: u32,
    endpoint: &'a [u8],
}

/// A link that is being opened.
pub(crate) struct Handover<E> {
    /// This side's endpoint.
    pub(crate) endpoint: E,
    /// The adapter's name for the endpoint.
    pub(crate) name: u32,
    /// This side's token of the link.
    pub(crate) token: u64,
    /// The other side's token.
    pub(crate) theirs: u64,
    /// The bytes read so far.
    received: Vec<u8>,
    has_joined: bool,
    opened: Opened,
}

/// The fabric's part of opening links.
pub(crate) struct Greeter<'a, A: Adapter> {
    pub(crate) adapter: &'a mut A,
    /// Name of the driver; both sides must have the same.
    pub(crate) driver: &'static str,
    /// Secret of the job.
    pub(crate) secret: [u8; 32],
    /// Number of endpoint names used so far.
    pub(crate) names: &'a mut u32,
    /// Tokens of links that the other side may use before this side has finished.
    pub(crate) awaited: &'a mut Vec<u64>,
}

impl<A: Adapter> Exchange for Greeter<'_, A> {
    type State = Handover<A::Endpoint>;

    fn begin(&mut self, socket: &OwnedFd, opened: &Opened) -> Result<Self::State, Failure> {
        let name = *self.names;
        let (endpoint, introduction) = self.adapter.endpoint(name).map_err(Failure::permanent)?;
        *self.names = name.wrapping_add(1);
        let random = handshake::random()
            .map_err(|e| Failure::permanent(format!("gets no link: no random bytes from the system: {e}")))?;
        let token = u64::from(name)
            | u64::from(u32::from_le_bytes([random[0], random[1], random[2], random[3]])) << 32;
        self.awaited.push(token);
        let introduction = Introduction {
            driver: self.driver.as_bytes(),
            token,
            slot: SLOT as u32,
            endpoint: &introduction,
        }
        .encode();
        let mac = opened.ends.seal(&self.secret, opened.is_attempt, &introduction);
        let mut message = Vec::from((introduction.len() as u16).to_le_bytes());
        message.extend_from_slice(mac.as_bytes());
        message.extend_from_slice(&introduction);
        send(socket, &message)?;
        let opened = opened.clone();
        Ok(Handover { endpoint, name, token, theirs: 0, received: Vec::new(), has_joined: false, opened })
    }

    fn proceed(&mut self, socket: &OwnedFd, state: &mut Self::State) -> Result<bool, Failure> {
        if !state.has_joined {
            if !receive(socket, &mut state.received, 2)? {
                return Ok(false);
            }
            let len = usize::from(u16::from_le_bytes([state.received[0], state.received[1]]));
            if len > LONGEST {
                return Err(Failure::permanent("broke the handshake: a message is too long"));
            }
            if !receive(socket, &mut state.received, 2 + MAC + len)? {
                return Ok(false);
            }
            self.join(state)?;
            send(socket, &[READY])?;
            state.has_joined = true;
            state.received.clear();
        }
        Ok(match receive(socket, &mut state.received, 1)? {
            false => false,
            true if state.received[0] == READY => true,
            true => return Err(Failure::permanent("broke the handshake: it never became ready")),
        })
    }
}

impl<A: Adapter> Greeter<'_, A> {
    fn join(&mut self, state: &mut Handover<A::Endpoint>) -> Result<(), Failure> {
        let (mac, introduction) = state.received[2..].split_at(MAC);
        let expected = state.opened.ends.seal(&self.secret, !state.opened.is_attempt, introduction);
        // `blake3::Hash` compares in constant time.
        if !mac.try_into().is_ok_and(|mac: [u8; MAC]| expected == mac) {
            return Err(Failure::permanent("broke the handshake: the proof of its endpoint is wrong"));
        }
        let introduction = Introduction::decode(introduction)
            .ok_or_else(|| Failure::permanent("broke the handshake: cut short"))?;
        if introduction.driver != self.driver.as_bytes() {
            let (ours, theirs) = (self.driver, String::from_utf8_lossy(introduction.driver));
            return Err(Failure::permanent(format!(
                "uses driver {theirs} where this side uses {ours} (set the same NMAD_DRIVER everywhere)"
            )));
        }
        if introduction.slot != SLOT as u32 {
            return Err(Failure::permanent("has buffers of another length (start one release everywhere)"));
        }
        state.theirs = introduction.token;
        self.adapter.join(&mut state.endpoint, introduction.endpoint).map_err(Failure::permanent)
    }
}

impl Introduction<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.driver.len() as u8];
        bytes.extend_from_slice(self.driver);
        bytes.extend_from_slice(&self.token.to_le_bytes());
        bytes.extend_from_slice(&self.slot.to_le_bytes());
        bytes.extend_from_slice(self.endpoint);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Introduction<'_>> {
        let (len, rest) = bytes.split_first()?;
        let (driver, rest) = rest.split_at_checked(usize::from(*len))?;
        let (token, rest) = rest.split_first_chunk::<8>()?;
        let (slot, endpoint) = rest.split_first_chunk::<4>()?;
        let (token, slot) = (u64::from_le_bytes(*token), u32::from_le_bytes(*slot));
        Some(Introduction { driver, token, slot, endpoint })
    }
}

fn failure(e: Errno) -> Failure {
    let why = format!("closed the connection while the link was opened: {e} (has it died?)");
    Failure { kind: FailureKind::Ended, why }
}

/// Sends a message. Little else was sent on this connection, so the send buffer has room.
fn send(socket: &OwnedFd, message: &[u8]) -> Result<(), Failure> {
    match net::send(socket, message, SendFlags::NOSIGNAL) {
        Ok(sent) if sent == message.len() => Ok(()),
        Ok(_) => Err(failure(Errno::NOBUFS)),
        Err(e) => Err(failure(e)),
    }
}

/// Reads up to `len` bytes in total; returns whether they are complete.
fn receive(socket: &OwnedFd, received: &mut Vec<u8>, len: usize) -> Result<bool, Failure> {
    let mut bytes = [0; LONGEST];
    while received.len() < len {
        let most = (len - received.len()).min(LONGEST);
        match net::recv(socket, &mut bytes[..most], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(failure(Errno::CONNRESET)),
            Ok((_, got)) => received.extend_from_slice(&bytes[..got]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(false),
            Err(e) => return Err(failure(e)),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_introduction_survives_its_encoding_and_shorter_ones_are_refused() {
        let introduction = Introduction { driver: b"verbs", token: 1 << 60, slot: 7, endpoint: b"there" };
        let bytes = introduction.encode();
        let received = Introduction::decode(&bytes).expect("all of it");
        assert_eq!(
            (received.driver, received.token, received.slot, received.endpoint),
            (introduction.driver, 1 << 60, 7, introduction.endpoint)
        );
        let shortest = bytes.len() - introduction.endpoint.len();
        assert!((0..shortest).all(|len| Introduction::decode(&bytes[..len]).is_none()));
    }
}
