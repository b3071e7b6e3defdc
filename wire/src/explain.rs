//! Any packet in one line, for traces and error messages.

use crate::{ChunkHeader, Control, Eager, Frame, Header, Kind, Seen, flags, frames};
use core::fmt;

/// A packet that prints as one line; made by [`explain`].
#[derive(Debug, Clone, Copy)]
pub struct Explain<'a>(&'a [u8]);

/// One line that says what `packet` (header included) carries, or where it is malformed.
pub fn explain(packet: &[u8]) -> Explain<'_> {
    Explain(packet)
}

/// The same for a packet that carries one message and nothing else, of which only the head is there.
pub fn explain_alone(header: Header, eager: Eager) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        about(f, header)?;
        write!(f, " | {}", Frame::Eager(eager, &[]))
    })
}

impl fmt::Display for Explain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = match Header::decode(self.0) {
            Ok(header) => header,
            Err(e) => return write!(f, "{e} ({} B)", self.0.len()),
        };
        match header.kind {
            Kind::Packet | Kind::Notice => packet(f, header, &self.0[Header::LEN..]),
            Kind::Chunk => match ChunkHeader::decode(header, self.0) {
                Ok(c) => {
                    write!(f, "chunk #{} of {} B to region {:#x} at {}", c.number, c.len, c.region, c.offset)
                }
                Err(e) => write!(f, "{e}"),
            },
            Kind::Control => match Control::decode(self.0) {
                Ok(Control::Hello(h)) => {
                    write!(f, "hello from rank {} (its rail {}) to rank {}", h.from, h.rail, h.to)?;
                    h.offer.map_or(Ok(()), |offer| write!(f, ", encrypted ({:?})", offer.cipher))
                }
                Ok(Control::Welcome(w)) => {
                    write!(f, "welcome on rail {}", w.rail)?;
                    w.offer.map_or(Ok(()), |offer| write!(f, ", encrypted ({:?})", offer.cipher))
                }
                Ok(Control::Proof(_)) => write!(f, "proof"),
                Ok(Control::Refuse(r)) => write!(f, "refused: {}", r.text.escape_debug()),
                Err(e) => write!(f, "{e}"),
            },
        }
    }
}

fn about(f: &mut fmt::Formatter<'_>, header: Header) -> fmt::Result {
    match header.kind {
        Kind::Notice => write!(f, "notice of {} B, ack {}", header.len, header.ack),
        _ => write!(f, "packet #{} of {} B, ack {}", header.number, header.len, header.ack),
    }
}

fn packet(f: &mut fmt::Formatter<'_>, header: Header, body: &[u8]) -> fmt::Result {
    about(f, header)?;
    for frame in frames(body) {
        match frame {
            Ok(frame) => write!(f, " | {frame}")?,
            Err(e) => write!(f, " | {e}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Eager(e, _) => {
                write!(f, "eager {} B context {} tag {:#x}", e.len, e.context, e.tag)?;
                order(f, e.flags, e.seq)
            }
            Frame::Rts(r, blocks) => {
                write!(f, "rts {} B context {} tag {:#x}", r.len, r.context, r.tag)?;
                order(f, r.flags, r.seq)?;
                if !blocks.is_empty() {
                    write!(f, " with {} blocks of {} B", blocks.count(), blocks.data().len())?;
                }
                if r.flags & flags::INVITED != 0 {
                    write!(f, " to open region {:#x}", r.region)
                } else if r.flags & flags::PUSHED != 0 {
                    write!(f, " of which {} B are pushed", r.pushed)
                } else if r.flags & flags::READ != 0 {
                    write!(f, " to be read at {:#x}", r.address)
                } else if r.flags & flags::PARTS != 0 {
                    write!(f, " in parts")
                } else {
                    Ok(())
                }
            }
            Frame::Part(p, _) => write!(f, "part of {} B at {} of {} B", p.len, p.offset, p.total),
            Frame::Cts(c) => write!(f, "cts region {:#x} takes {} B", c.region, c.len),
            Frame::Rtr(p) => {
                write!(
                    f,
                    "rtr region {:#x} takes {} B context {} tag {:#x} from seq {}",
                    p.region, p.len, p.context, p.tag, p.seq
                )
            }
            Frame::Fin(x) => write!(f, "fin {:#x}", x.request),
            Frame::Ack(a) => write!(f, "ack beyond {:#x}", a.beyond),
            Frame::Credit(c) => write!(f, "credit up to {} B", c.limit),
            Frame::Replay(r) => write!(f, "replay of rail {} #{} ({} B)", r.rail, r.number, r.frames.len()),
            Frame::LinkDown(d) => write!(f, "rail {} down", d.rail),
            Frame::Withdraw(w) => write!(f, "withdraw region {:#x}", w.region),
            Frame::Withdrawn(w) => write!(f, "withdrawn region {:#x}, used: {}", w.region, w.used),
            Frame::Reclaim(r) => write!(f, "reclaim {:#x}, is free: {}", r.request, r.is_free),
            Frame::Bye => write!(f, "bye"),
            Frame::Ask(a) => write!(f, "question {}: what has arrived from rail {}?", a.question, a.rail),
            Frame::Seen(seen) => {
                let Seen { rail, question, below, beyond, .. } = seen;
                write!(f, "answer {question}: seen from rail {rail} below {below}, beyond {beyond:#x}")
            }
        }
    }
}

fn order(f: &mut fmt::Formatter<'_>, bits: u8, seq: u32) -> fmt::Result {
    if bits & flags::UNORDERED != 0 { write!(f, " unordered") } else { write!(f, " seq {seq}") }
}
