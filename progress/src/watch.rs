//! A descriptor for applications that have a loop of their own, in which messages are one thing among others.
//!
//! The descriptor is readable when it is worth turning the pump: a rail has something, or another thread (the
//! helper, say) has ended requests. It says so only while it is *armed*, since ringing a bell costs a
//! system call for each request that ends.

use crate::idle::borrow;
use nmad_engine::Duration;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use std::io;

/// What arming says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// Something has happened: look at your requests, then arm again.
    Busy,
    /// Sleep on the descriptor, for at most this long, then turn the pump.
    Sleep(Duration),
}

/// The state behind the descriptor.
pub(crate) struct Watch {
    /// The descriptor: a set of the rails' descriptors and the bell.
    set: OwnedFd,
    /// Rings when requests have ended.
    bell: OwnedFd,
    /// The rails' descriptors in the set.
    rails: Vec<i32>,
    armed: bool,
    /// Requests have ended since it was armed the last time.
    has_ended: bool,
}

impl Watch {
    pub(crate) fn new() -> io::Result<Watch> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        epoll::add(&set, &bell, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        // Nobody has kept count so far: something may have ended since the requests were looked at.
        Ok(Watch { set, bell, rails: Vec::new(), armed: false, has_ended: true })
    }

    /// Requests have ended.
    pub(crate) fn ended(&mut self) {
        self.has_ended = true;
        if std::mem::take(&mut self.armed) {
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// The descriptor; it belongs to this value.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.set.as_raw_fd()
    }

    /// Whether requests have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.has_ended)
    }

    /// Whether somebody sleeps on it, or is about to.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed
    }

    /// Prepares one sleep on the descriptor, which any of these may end.
    pub(crate) fn arm(&mut self, rails: Vec<i32>) -> io::Result<()> {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        if rails != self.rails {
            for &fd in &self.rails {
                // One that is closed has left the set by itself.
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
