//! A wakeup descriptor for applications with an event loop of their own.
//!
//! The descriptor is readable when the pump should be turned: a rail has an event, or another thread (such
//! as the helper) has ended requests. It reports ended requests only while it is *armed*, since each report
//! costs a system call.

use crate::idle::borrow;
use nmad_engine::Duration;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use std::io;

/// Result of arming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// Something has happened: look at your requests, then arm again.
    Busy,
    /// Sleep on the descriptor, for at most this long, then turn the pump.
    Sleep(Duration),
}

/// The state behind the descriptor.
pub(crate) struct Watch {
    /// The descriptor: an epoll set of the rails' descriptors and `ended_event`.
    set: OwnedFd,
    /// Becomes readable when requests have ended.
    ended_event: OwnedFd,
    /// The rails' descriptors in the set.
    rails: Vec<i32>,
    armed: bool,
    /// Requests have ended since it was armed the last time.
    has_ended: bool,
}

impl Watch {
    pub(crate) fn new() -> io::Result<Watch> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let ended_event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        epoll::add(&set, &ended_event, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        // Ended requests were not counted so far: one may have ended since the application checked.
        Ok(Watch { set, ended_event, rails: Vec::new(), armed: false, has_ended: true })
    }

    /// Notes that requests have ended, and wakes an armed sleeper.
    pub(crate) fn ended(&mut self) {
        self.has_ended = true;
        if std::mem::take(&mut self.armed) {
            let _ = rustix::io::write(&self.ended_event, &1u64.to_ne_bytes());
        }
    }

    /// Returns the descriptor, which belongs to this value.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.set.as_raw_fd()
    }

    /// Returns whether requests have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.has_ended)
    }

    /// Returns whether a thread sleeps on the descriptor or is about to.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed
    }

    /// Prepares one sleep on the descriptor, which these rails and ended requests may end.
    pub(crate) fn arm(&mut self, rails: Vec<i32>) -> io::Result<()> {
        let _ = rustix::io::read(&self.ended_event, &mut [0u8; 8]);
        if rails != self.rails {
            for &fd in &self.rails {
                // A closed descriptor has left the set by itself.
                let _ = epoll::delete(&self.set, borrow(fd));
            }
            self.rails.clear();
            for fd in rails {
                let nothing = epoll::EventData::new_u64(0);
                epoll::add(&self.set, borrow(fd), nothing, epoll::EventFlags::IN)?;
                self.rails.push(fd);
            }
        }
        self.armed = true;
        Ok(())
    }
}
