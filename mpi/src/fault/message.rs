//! Encoding of the notices that processes send each other about failures.

use super::agreement::{Decision, Message, Value};
use super::set::Set;
use newmadeleine::engine::Context;

/// Identifies an agreement: context of its communicator, and sequence number on that communicator.
pub(super) type AgreementId = (u32, u64);

/// A message about failures, from one process to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// The communicator with this context was revoked.
    Revoked(Context),
    /// The rank (see [`super::state::ranks`]) of the communicator with this context has failed.
    Failed(Context, u32),
    /// An encoded message of an agreement. Decoding needs the number of ranks.
    Agreement(AgreementId, Vec<u8>),
}

const REVOKED: u8 = 0;
const FAILED: u8 = 1;
const AGREEMENT: u8 = 2;
const UP: u8 = 0;
const DOWN: u8 = 1;

impl Notice {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Notice::Revoked(context) => {
                bytes.push(REVOKED);
                bytes.extend(context.0.to_le_bytes());
            }
            Notice::Failed(context, rank) => {
                bytes.push(FAILED);
                bytes.extend(context.0.to_le_bytes());
                bytes.extend(rank.to_le_bytes());
            }
            Notice::Agreement((context, number), message) => {
                bytes.push(AGREEMENT);
                bytes.extend(context.to_le_bytes());
                bytes.extend(number.to_le_bytes());
                bytes.extend(message);
            }
        }
        bytes
    }

    /// Decodes a notice; `None` for invalid bytes.
    pub(super) fn decode(bytes: &[u8]) -> Option<Notice> {
        let (kind, mut rest) = bytes.split_first()?;
        match *kind {
            REVOKED => Some(Notice::Revoked(Context(u32::from_le_bytes(rest.try_into().ok()?)))),
            FAILED => {
                let context = Context(u32::from_le_bytes(take(&mut rest)?));
                Some(Notice::Failed(context, u32::from_le_bytes(rest.try_into().ok()?)))
            }
            AGREEMENT => {
                let context = u32::from_le_bytes(take(&mut rest)?);
                let number = u64::from_le_bytes(take(&mut rest)?);
                Some(Notice::Agreement((context, number), rest.to_vec()))
            }
            _ => None,
        }
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*bytes)
}

impl Message {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let value = match self {
            Message::Up { failed, covered, value } => {
                bytes.push(UP);
                failed.encode(&mut bytes);
                covered.encode(&mut bytes);
                value
            }
            Message::Down(Decision { value, failed }) => {
                bytes.push(DOWN);
                failed.encode(&mut bytes);
                value
            }
        };
        bytes.extend(value.flags.to_le_bytes());
        value.most.iter().for_each(|most| bytes.extend(most.to_le_bytes()));
        value.acknowledged.encode(&mut bytes);
        bytes
    }

    /// Decodes a message of an agreement among `size` ranks; `None` for invalid bytes.
    pub(super) fn decode(bytes: &[u8], size: usize) -> Option<Message> {
        let (kind, mut rest) = bytes.split_first()?;
        let failed = Set::decode(&mut rest, size)?;
        let covered = match *kind {
            UP => Some(Set::decode(&mut rest, size)?),
            DOWN => None,
            _ => return None,
        };
        let flags = i32::from_le_bytes(take(&mut rest)?);
        let most = [i64::from_le_bytes(take(&mut rest)?), i64::from_le_bytes(take(&mut rest)?)];
        let value = Value { flags, most, acknowledged: Set::decode(&mut rest, size)? };
        rest.is_empty().then_some(match covered {
            Some(covered) => Message::Up { failed, covered, value },
            None => Message::Down(Decision { value, failed }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(size: usize, ranks: &[usize]) -> Set {
        let mut set = Set::none(size);
        ranks.iter().for_each(|rank| set.add(*rank));
        set
    }

    #[test]
    fn messages_and_notices_survive_encoding_and_invalid_bytes_are_rejected() {
        for size in [3, 64, 65, 1000] {
            let value = Value { flags: -2, most: [7, i64::MIN], acknowledged: set(size, &[0, 2, size - 1]) };
            let (failed, covered) = (set(size, &[1]), set(size, &[0, size - 1]));
            let up = Message::Up { failed: failed.clone(), covered, value: value.clone() };
            for message in [up, Message::Down(Decision { value: value.clone(), failed: failed.clone() })] {
                let bytes = message.encode();
                assert_eq!(Message::decode(&bytes, size), Some(message.clone()));
                for len in 0..bytes.len() {
                    assert_eq!(Message::decode(&bytes[..len], size), None, "{len}");
                }
                assert_eq!(Message::decode(&[&bytes[..], &[0]].concat(), size), None);
                let notice = Notice::Agreement((6, 1 << 40), bytes);
                assert_eq!(Notice::decode(&notice.encode()), Some(notice));
            }
        }
        for notice in [Notice::Revoked(Context(12)), Notice::Failed(Context(6), 70_000)] {
            assert_eq!(Notice::decode(&notice.encode()), Some(notice));
        }
        for bytes in [&[][..], &[9], &[REVOKED, 1], &[FAILED, 1, 0, 0, 0, 9], &[AGREEMENT, 1, 0, 0, 0]] {
            assert_eq!(Notice::decode(bytes), None, "{bytes:?}");
        }
    }
}
