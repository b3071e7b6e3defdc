//! The job that the rails of a bridge believe to be in: both groups, the first one first. What its ranks put
//! goes to the roots, which tell each other.

use super::super::party::Party;
use crate::error::Error;
use crate::task::block_on;
use newmadeleine::launch::port::Meeting;
use newmadeleine::launch::{Bootstrap, LaunchError};
use std::collections::BTreeMap;

pub(crate) struct Exchange<'a> {
    pub(super) rank: u32,
    /// The node of each rank.
    pub(super) nodes: Vec<u32>,
    pub(super) secret: [u8; 32],
    pub(super) name: String,
    /// The local group, the root first.
    pub(super) party: &'a Party,
    /// At the root.
    pub(super) meeting: Option<&'a mut Meeting>,
    pub(super) put: String,
    pub(super) values: BTreeMap<String, String>,
}

impl Exchange<'_> {
    /// What both groups have, in the order of groups.
    pub(super) fn both(&mut self, mine: Vec<u8>) -> Result<Vec<u8>, LaunchError> {
        let ours = block_on(self.party.collect(mine)).map_err(lost)?;
        let all = match &mut self.meeting {
            None => None,
            Some(meeting) => {
                let theirs = meeting.swap(&ours)?;
                Some(if meeting.is_first() { [ours, theirs] } else { [theirs, ours] }.concat())
            }
        };
        block_on(self.party.spread(all)).map_err(lost)
    }
}

fn lost(why: Error) -> LaunchError {
    LaunchError::Port(why.text().to_string())
}

impl Bootstrap for Exchange<'_> {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), LaunchError> {
        // Addresses have neither blanks nor newlines.
        self.put.push_str(&format!("{key} {value}\n"));
        Ok(())
    }

    fn fence(&mut self) -> Result<(), LaunchError> {
        let put = std::mem::take(&mut self.put);
        let all = self.both(put.into_bytes())?;
        let text = String::from_utf8_lossy(&all);
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        self.values.extend(pairs.map(|(key, value)| (key.to_string(), value.to_string())));
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        Ok(self.values.get(key).cloned())
    }

    fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    fn program(&self) -> Option<u32> {
        None
    }

    fn secret(&self) -> [u8; 32] {
        self.secret
    }

    fn job(&self) -> &str {
        &self.name
    }

    fn abort(&mut self, _: i32, _: &str) {}

    fn finish(self: Box<Self>) -> Result<(), LaunchError> {
        Ok(())
    }
}
