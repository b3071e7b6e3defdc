//! Connections that were accepted and whose other side has not proved who it is.

use super::connect::mixed;
use crate::conversation::{Conversation, Heard};
use crate::handshake::{self, Ends};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, Refusal, RefusalCode, VERSION};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::net::SocketAddr;

/// Age after which one that has said nothing sensible makes room for others, in milliseconds.
pub const PATIENCE_MS: u64 = 250;

/// An accepted connection.
#[derive(Debug)]
pub struct Stranger {
    talk: Conversation,
    /// From where it comes.
    pub from: SocketAddr,
    /// When it came, in milliseconds.
    pub since_ms: u64,
    /// What it claims to be, once it has been welcomed.
    ends: Option<Ends>,
}

/// How far a stranger has come.
#[derive(Debug)]
pub enum Progress {
    /// Further on another time.
    On,
    /// It wants a link; answered by [`Stranger::welcome`] or [`Stranger::refuse`].
    Hello(Hello),
    /// It has proved who it is.
    Proved(PeerId, u8),
    /// It is to be refused.
    Refuse(RefusalCode, String),
    /// It has gone, and why.
    Gone(String),
}

impl Stranger {
    /// One that has just come.
    pub fn new(fd: OwnedFd, from: SocketAddr, now_ms: u64) -> Self {
        Stranger { talk: Conversation::new(fd), from, since_ms: now_ms, ends: None }
    }

    /// The peer that it claims to be, if it was welcomed as such.
    pub fn claims(&self) -> Option<PeerId> {
        self.ends.map(|ends| PeerId(ends.hello.from))
    }

    /// Listens to what it says.
    pub fn listen(&mut self, secret: &[u8; 32]) -> Progress {
        match (self.talk.hear(), &self.ends) {
            (Heard::Nothing, _) => Progress::On,
            (Heard::Message(Control::Hello(hello)), None) => Progress::Hello(hello),
            (Heard::Message(Control::Proof(proof)), Some(ends)) => {
                if ends.proves(&proof, secret) {
                    Progress::Proved(PeerId(ends.hello.from), ends.hello.rail)
                } else {
                    let text = "your side has another secret (is it of the same job?)".into();
                    Progress::Refuse(RefusalCode::Secret, text)
                }
            }
            (Heard::Message(Control::Refuse(Refusal { text, .. })), _) => {
                Progress::Gone(format!("it refused: {text}"))
            }
            (Heard::Message(_), _) => {
                Progress::Refuse(RefusalCode::Rank, "that message was out of turn".into())
            }
            (Heard::Ended, _) => Progress::Gone("it closed the connection".into()),
            (Heard::Failed(e), _) => Progress::Gone(e.to_string()),
            (Heard::OtherVersion(theirs), _) => {
                Progress::Refuse(RefusalCode::Version, mixed("this side", VERSION, "the other side", theirs))
            }
            (Heard::Foreign(e), _) => Progress::Refuse(RefusalCode::Version, e.to_string()),
        }
    }

    /// Answers a hello. False: the answer could not be given.
    pub fn welcome(&mut self, hello: Hello, rail: u8, secret: &[u8; 32]) -> bool {
        let ends = Ends { hello, rail, nonce: handshake::nonce() };
        self.ends = Some(ends);
        self.talk.say(&ends.welcome(secret)).is_ok()
    }

    /// Says that there will be no link; the socket is left for the refusal to arrive.
    pub fn refuse(self, code: RefusalCode, text: &str) -> OwnedFd {
        self.talk.refuse(code, text);
        self.talk.into_socket()
    }

    /// The socket of the link.
    pub fn into_socket(self) -> OwnedFd {
        self.talk.into_socket()
    }
}

impl AsFd for Stranger {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.talk.as_fd()
    }
}
