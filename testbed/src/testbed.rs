//! What joins the parts: hosts, the switch between them, rails.

use crate::address::{host_name, rail_name};
use crate::birth::User;
use crate::holder::Holder;
use crate::mounts::hosts_file;
use crate::{ENVIRONMENT, Host, Inside, Method, Rate, Refused, Spec, TestbedError, wiring};
use nmad_netlink::Socket;
use std::process::{Child, Command};

/// Hosts and rails, which live as long as this value (and never longer than this process).
///
/// Dropping it kills every program that still runs in its hosts.
pub struct Testbed {
    hosts: Vec<Host>,
    /// Owns the bridges and, for other users than root, the user namespace of all hosts.
    switch: Holder,
    method: Method,
    rails: u32,
}

impl Testbed {
    /// Builds what `spec` asks for. Takes some ten milliseconds for each host.
    ///
    /// # Errors
    /// [`TestbedError::Refused`] where this user may not make namespaces, [`TestbedError::Spec`] for numbers
    /// out of range, [`TestbedError::Kernel`] for what a kernel lacks. Nothing is left behind.
    pub fn build(spec: &Spec) -> Result<Testbed, TestbedError> {
        spec.check()?;
        let program = spec.prefix()?;
        let method = Method::of_this_process();
        let user = match method {
            Method::Privileged => User::Same,
            Method::UserNamespace => User::New,
        };
        let (switch, socket) = Holder::start(user, None)?;
        let rails = spec.rails.len() as u32;
        let names = hosts_file(spec.hosts, rails);
        let hosts = (0..spec.hosts)
            .map(|index| Host::start(index, method, switch.pidfd(), &program, names.as_bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let testbed = Testbed { hosts, switch, method, rails };
        testbed.lay_rails(socket.into(), &spec.rails)?;
        Ok(testbed)
    }

    /// The testbed this program runs in, or `None` if it runs in none.
    ///
    /// # Errors
    /// [`TestbedError::Environment`] if `NMAD_TESTBED` is set to something else than a list of hosts.
    pub fn from_env() -> Result<Option<Inside>, TestbedError> {
        Inside::from_env()
    }

    /// By which right it was built.
    pub fn method(&self) -> Method {
        self.method
    }

    /// All hosts, by number.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Number of rails.
    pub fn rail_count(&self) -> u32 {
        self.rails
    }

    /// The host number `index`.
    ///
    /// # Panics
    /// If the spec asked for fewer hosts, as indexing does.
    pub fn host(&self, index: u32) -> &Host {
        &self.hosts[index as usize]
    }

    /// What `NMAD_TESTBED` says in every host.
    pub fn environment(&self) -> String {
        let hosts = self.hosts.iter().map(|host| format!("{}={}", host.name(), host.prefix().join(" ")));
        hosts.collect::<Vec<_>>().join(";")
    }

    /// Has `command`, whenever it is started, run in host number `host`, with the same working directory
    /// and `NMAD_TESTBED` set.
    pub fn place(&self, host: u32, command: &mut Command) -> Result<(), TestbedError> {
        self.known(host)?.entry()?.apply(command);
        command.env(ENVIRONMENT, self.environment());
        Ok(())
    }

    /// Starts `command` in host number `host`.
    ///
    /// # Errors
    /// [`TestbedError::Start`] if the program does not exist or may not be run.
    pub fn run(&self, host: u32, mut command: Command) -> Result<Child, TestbedError> {
        self.place(host, &mut command)?;
        command.spawn().map_err(|source| TestbedError::Start {
            host: host_name(host),
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })
    }

    /// Switches `rail` on or off at `host`. Off, the other end loses its carrier: at once what is in flight
    /// is lost, and the kernel says "network is unreachable" here.
    pub fn set_link(&self, host: u32, rail: u32, up: bool) -> Result<(), TestbedError> {
        self.known(host)?.with_socket(|socket| wiring::switch(socket, host, rail, up))
    }

    /// Sets what every host may send over `rail`, also in the middle of a transfer.
    pub fn set_rate(&self, rail: u32, rate: Rate) -> Result<(), TestbedError> {
        if rail >= self.rails {
            return Err(TestbedError::NoSuchRail { asked: rail_name(rail) });
        }
        self.hosts.iter().try_for_each(|host| host.with_socket(|socket| wiring::limit(socket, rail, rate)))
    }

    /// Sets how long frames may be on `rail` at every host, in bytes behind their Ethernet headers: 1500 at
    /// first.
    pub fn set_mtu(&self, rail: u32, mtu: u32) -> Result<(), TestbedError> {
        self.hosts.iter().try_for_each(|host| host.with_socket(|socket| wiring::size(socket, rail, mtu)))
    }

    /// Adds the IPv4 address of every host on `rail`, or removes it and keeps the IPv6 address.
    pub fn set_ipv4(&self, rail: u32, has_it: bool) -> Result<(), TestbedError> {
        let set =
            |host: &Host| host.with_socket(|socket| wiring::address_v4(socket, host.index(), rail, has_it));
        self.hosts.iter().try_for_each(set)
    }

    fn lay_rails(&self, mut switch: Socket, rates: &[Rate]) -> Result<(), TestbedError> {
        let networks = self.hosts.iter().map(Host::network).collect::<Result<Vec<_>, _>>()?;
        for (rail, rate) in (0..).zip(rates) {
            wiring::lay(&mut switch, &networks, rail)?;
            for host in &self.hosts {
                self.set_link(host.index(), rail, true)?;
            }
            if *rate != Rate::Unlimited {
                self.set_rate(rail, *rate)?;
            }
        }
        Ok(())
    }

    fn known(&self, host: u32) -> Result<&Host, TestbedError> {
        let last = self.hosts.len() as u32 - 1;
        self.hosts.get(host as usize).ok_or(TestbedError::NoSuchHost { asked: host_name(host), last })
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // All at once, then the fields' own drop waits for each.
        self.hosts.iter_mut().for_each(Host::release);
        self.switch.release();
    }
}

/// Really builds a testbed of two hosts with a shaped rail, takes it down again, and says how it was done.
/// Takes some ten milliseconds.
///
/// # Errors
/// Why it could not be built, and what would allow it. Callers fall back to processes on one host.
pub fn available() -> Result<Method, Refused> {
    match Testbed::build(&Spec::new(2, vec![Rate::Limited(1_000_000_000)])) {
        Ok(testbed) => Ok(testbed.method()),
        Err(TestbedError::Refused(refused)) => Err(refused),
        Err(error) => Err(Refused {
            cause: error.to_string(),
            remedy: "this kernel lacks something that virtual hosts need".to_owned(),
        }),
    }
}
