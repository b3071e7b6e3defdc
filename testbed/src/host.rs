//! One host, as its builder sees it.

use crate::address::{address, address6, host_name};
use crate::birth::{Identity, User};
use crate::enter::Entry;
use crate::holder::Holder;
use crate::netlink::{RailState, observe};
use crate::{Method, TestbedError, wiring};
use nmad_netlink::Socket;
use rustix::fd::{BorrowedFd, OwnedFd};
use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// A host of a [`crate::Testbed`].
pub struct Host {
    index: u32,
    name: String,
    prefix: Vec<String>,
    socket: Mutex<Socket>,
    holder: Holder,
    method: Method,
}

impl Host {
    /// Starts host number `index`, whose user namespace, if it has one, is that of the process `owner`.
    pub(crate) fn start(
        index: u32,
        method: Method,
        owner: BorrowedFd<'_>,
        program: &[String],
        hosts_file: &[u8],
    ) -> Result<Host, TestbedError> {
        let name = host_name(index);
        let user = match method {
            Method::Privileged => User::Same,
            Method::UserNamespace => User::Of(owner),
        };
        let in_c = CString::new(name.as_str()).unwrap_or_default();
        let (holder, socket) = Holder::start(user, Some(&Identity { name: &in_c, hosts_file }))?;
        let mut prefix = program.to_vec();
        prefix.push(holder.pid().to_string());
        let host = Host { index, name, prefix, socket: Mutex::new(socket.into()), holder, method };
        host.with_socket(wiring::raise_loopback)?;
        Ok(host)
    }

    /// Its number, from 0.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its host name, `host0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command prefix: followed by a program and its arguments, it runs that in this host.
    ///
    /// It works as long as the testbed lives, for the user who built it.
    pub fn prefix(&self) -> Vec<String> {
        self.prefix.clone()
    }

    /// Its IPv4 address on `rail`.
    pub fn addr(&self, rail: u32) -> Ipv4Addr {
        address(self.index, rail)
    }

    /// Its IPv6 address on `rail`.
    pub fn addr6(&self, rail: u32) -> Ipv6Addr {
        address6(self.index, rail)
    }

    /// The process that keeps this host alive; its namespaces are under `/proc/PID/ns`.
    pub fn pid(&self) -> u32 {
        self.holder.pid()
    }

    /// Its rails, as the kernel has them now.
    pub fn rails(&self) -> Result<Vec<RailState>, TestbedError> {
        self.with_socket(|socket| {
            observe(socket).map_err(|source| TestbedError::Kernel {
                step: format!("list the rails of {}", self.name),
                source,
                remedy: "is the namespace being torn down?",
            })
        })
    }

    /// Adds the interface `name` with the address `own`, over which no other host can be reached. With a
    /// carrier it is connected to a network without hosts; without, it is like `docker0` on a machine without
    /// containers.
    ///
    /// # Errors
    /// The host has an interface of this name, or the kernel does not support such interfaces.
    pub fn add_nowhere(&self, name: &str, own: IpAddr, has_carrier: bool) -> Result<(), TestbedError> {
        self.with_socket(|socket| wiring::lead_nowhere(socket, name, own, has_carrier))
    }

    /// Does something in the host's network.
    pub(crate) fn with_socket<T>(&self, act: impl FnOnce(&mut Socket) -> T) -> T {
        // A panic elsewhere leaves at worst answers unread, which the next request skips by number.
        act(&mut self.socket.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How a process gets into this host.
    pub(crate) fn entry(&self) -> Result<Entry, TestbedError> {
        Entry::of(self.holder.pidfd(), self.method == Method::UserNamespace)
    }

    /// Its network namespace.
    pub(crate) fn network(&self) -> Result<OwnedFd, TestbedError> {
        crate::enter::network_of(self.pid())
    }

    /// Begins to end the host; dropping it waits for that.
    pub(crate) fn release(&mut self) {
        self.holder.release();
    }
}
