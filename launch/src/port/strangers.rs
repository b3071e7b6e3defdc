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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// The other side of a new connection.
    fn connect(strangers: &mut Strangers) -> UnixStream {
        let (here, there) = UnixStream::pair().expect("sockets");
        strangers.list.push(Greeting::begin(here.into(), true).expect("the other side is there"));
        there
    }

    #[test]
    fn one_behind_those_that_say_nothing_is_greeted_while_they_are_there() {
        let key = Secret::random().expect("random numbers");
        let mut strangers = Strangers::default();
        let silent: Vec<UnixStream> = (0..3).map(|_| connect(&mut strangers)).collect();
        let there = connect(&mut strangers).into();
        let mut other = Some(Greeting::begin(there, false).expect("this side is there"));
        let (mut found, mut theirs) = (None, None);
        for _ in 0..4 {
            found = found.or_else(|| strangers.go_on(&key));
            let Some(greeting) = other.take() else { continue };
            match greeting.go_on(&key).expect("both know the key") {
                Ok(greeted) => theirs = Some(greeted.secret),
                Err(greeting) => other = Some(greeting),
            }
        }
        assert!(found.is_some() && found.map(|greeted| greeted.secret) == theirs);
        assert_eq!(strangers.list.len(), silent.len(), "none of them was dropped for that");
    }

    #[test]
    fn one_that_sends_everything_back_does_not_know_the_key() {
        let key = Secret::random().expect("random numbers");
        let mut strangers = Strangers::default();
        let mut mirror = connect(&mut strangers);
        let mut heard = [0; 256];
        // The words and the number, and then the proof.
        for _ in 0..2 {
            let count = mirror.read(&mut heard).expect("something was said");
            mirror.write_all(&heard[..count]).expect("this side is there");
            assert!(strangers.go_on(&key).is_none());
        }
        assert!(strangers.list.is_empty(), "it was sent away");
    }
}
