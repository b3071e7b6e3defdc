//! Why a pattern never ends: ranks that wait for each other, or for what nobody sends.

use super::message::Message;
use super::predict::{Mode, Model};

impl Model<'_> {
    /// What the ranks that are not done wait for: the cycle, if there is one.
    pub(super) fn who_waits(&self) -> Vec<String> {
        let waits = |rank: usize| -> Option<(usize, String)> {
            let of = &self.ranks[rank];
            if of.mode == Mode::Done {
                return None;
            }
            let open = of.begun.iter().map(|&number| &self.messages[number]);
            let sent = open.clone().find(|message| message.from == rank && !message.is_sent);
            if let Some(Message { to, len, .. }) = sent {
                let why = format!("rank {rank} sends {len} B to rank {to}, which posts no receive for it");
                return Some((*to, why));
            }
            let missing = (0..self.ranks.len()).find(|&from| !self.unsent[self.pair(from, rank)].is_empty());
            let from = missing.or_else(|| open.clone().find(|m| !m.is_received).map(|m| m.from))?;
            let sender = &self.ranks[from];
            let why = match sender.mode {
                Mode::Done => format!("rank {rank} waits for a message of rank {from}, which sends no more"),
                _ => {
                    format!("rank {rank} waits for a message of rank {from}, which does not come to send it")
                }
            };
            Some((from, why))
        };
        let Some(start) = (0..self.ranks.len()).find(|&rank| waits(rank).is_some()) else {
            return Vec::new();
        };
        let mut path: Vec<(usize, String)> = Vec::new();
        let mut rank = start;
        while let Some((next, why)) = waits(rank) {
            if let Some(place) = path.iter().position(|(known, _)| *known == rank) {
                path.drain(..place);
                break;
            }
            path.push((rank, why));
            rank = next;
        }
        path.into_iter().map(|(_, why)| why).collect()
    }
}
