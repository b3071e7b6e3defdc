//! Unauthenticated connections to a port: all of them are greeted at the same time, and their number and
//! their time are limited.

use super::greeting::{Greeted, Greeting};
use crate::{Secret, reach};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Most connections. A further one replaces the oldest silent connection, or the oldest one.
const MOST: usize = 64;
/// Time limit of a greeting.
const LIMIT: Duration = Duration::from_secs(10);

/// The connections, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    list: Vec<Greeting>,
}

impl Strangers {
    /// Returns all connections.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Greeting> {
        self.list.iter()
    }

    /// Accepts waiting connections.
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

    /// Continues all greetings, up to the first that completes.
    pub(super) fn go_on(&mut self, key: &Secret) -> Option<Greeted> {
        let mut rest = std::mem::take(&mut self.list).into_iter();
        let mut found = None;
        for greeting in rest.by_ref() {
            // A greeting that fails is dropped: the other side does not know the key.
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

    /// Drops connections that have taken too long; returns the next time at which one does.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.list.retain(|greeting| now < greeting.since + LIMIT);
        self.list.iter().map(|greeting| greeting.since + LIMIT).min()
    }
}
