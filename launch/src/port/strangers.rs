//! Connections to a port whose other side has not proved yet that it knows the key: all of them are greeted
//! at the same time, and there is a bound for their number and for their time.

use super::greeting::{Greeted, Greeting};
use crate::{Secret, reach};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Connections at once. Of more, the oldest that has said nothing makes room, or the oldest one.
const MOST: usize = 64;
/// How long the other side may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The connections, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    list: Vec<Greeting>,
}

impl Strangers {
    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Greeting> {
        self.list.iter()
    }

    /// Takes the connections that wait.
    pub(super) fn accept(&mut self, listener: &OwnedFd) {
        for _ in 0..MOST {
            let Some(fd) = reach::accept(listener) else { return };
            if self.list.len() == MOST {
                let silent = self.list.iter().position(Greeting::is_silent);
                self.list.remove(silent.unwrap_or(0));
            }
            self.list.extend(Greeting::begin(fd, true).ok());
        }
    }

    /// Goes on with all greetings, up to the first whose other side knows the key.
    pub(super) fn go_on(&mut self, key: &Secret) -> Option<Greeted> {
        let mut rest = std::mem::take(&mut self.list).into_iter();
        let mut found = None;
        for greeting in rest.by_ref() {
            // One that fails does not know the key, and is nobody's loss.
            match greeting.go_on(key) {
                Ok(Ok(greeted)) => {
                    found = Some(greeted);
                    break;
                }
                Ok(Err(greeting)) => self.list.push(greeting),
                Err(_) => {}
            }
        }
        self.list.extend(rest);
        found
    }

    /// Drops those that have taken too long; until when none of the others has.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.list.retain(|greeting| now < greeting.since + LIMIT);
        self.list.iter().map(|greeting| greeting.since + LIMIT).min()
    }
}
