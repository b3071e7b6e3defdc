//! Joining a job over PMI-1: the client of `pmi/` with the node map and the secret around it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use super::{Bootstrap, one_by_one};
use crate::local::JOB_PREFIX;
use crate::pmi::client::Client;
use crate::pmi::spawn::{Request, SPAWNED};
use crate::secret::VARIABLE;
use crate::{LaunchError, Secret, mapping};

/// The key under which rank 0 publishes the secret.
const SECRET_KEY: &str = "nmad-secret";

/// A rank of a job under a PMI-1 launcher.
pub struct Pmi1 {
    client: Client,
    rank: u32,
    size: u32,
    nodes: Vec<u32>,
    program: Option<u32>,
    secret: Secret,
}

impl Pmi1 {
    /// Joins: initialisation, node map, program, secret. `given` is the secret that our launcher put into
    /// the environment, if any.
    pub fn join(
        fd: OwnedFd,
        rank: u32,
        size: u32,
        limit: Option<Duration>,
        given: Option<&str>,
    ) -> Result<Pmi1, LaunchError> {
        let mut client = Client::connect(fd, limit, given.is_some())?;
        let nodes = match client.get_raw(mapping::KEY)? {
            Some(map) if !map.is_empty() => mapping::parse(&map, size)?,
            _ => (0..size).collect(),
        };
        let program = client.program()?;
        let secret = join_secret(&mut client, rank, given)?;
        Ok(Pmi1 { client, rank, size, nodes, program, secret })
    }
}

/// Returns the secret of the job. The variable counts only under our launcher, which all ranks recognise by
/// the name of the job: elsewhere it may be left over from an outer job, or missing at some ranks.
fn join_secret(client: &mut Client, rank: u32, given: Option<&str>) -> Result<Secret, LaunchError> {
    if is_ours(client) {
        return given.and_then(Secret::from_hex).ok_or(LaunchError::Environment {
            name: VARIABLE,
            found: if given.is_some() { "set".into() } else { "not set".into() },
            why: "the launcher set it to 64 hexadecimal digits, and something in between changed it".into(),
        });
    }
    if rank == 0 {
        let secret = Secret::random()?;
        client.put(SECRET_KEY, &secret.to_hex())?;
        client.fence()?;
        return Ok(secret);
    }
    client.fence()?;
    let text = client.get(SECRET_KEY)?;
    text.as_deref().and_then(Secret::from_hex).ok_or_else(|| LaunchError::Value {
        key: SECRET_KEY.into(),
        why: "rank 0 did not put 64 hexadecimal digits; do all ranks run the same program?".into(),
    })
}

/// Returns whether the launcher is ours.
pub fn is_ours(client: &Client) -> bool {
    client.kvs().starts_with(JOB_PREFIX)
}

impl Bootstrap for Pmi1 {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), LaunchError> {
        self.client.put(key, value)
    }

    fn fence(&mut self) -> Result<(), LaunchError> {
        self.client.fence()
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        self.client.get(key)
    }

    fn get_each(&mut self, name: &str, take: &mut dyn FnMut(Option<String>)) -> Result<(), LaunchError> {
        if is_ours(&self.client) {
            return self.client.get_each(name, self.size, take);
        }
        one_by_one(self, name, take)
    }

    fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    fn program(&self) -> Option<u32> {
        self.program
    }

    fn secret(&self) -> [u8; 32] {
        self.secret.bytes()
    }

    fn job(&self) -> &str {
        self.client.kvs()
    }

    fn spawn(&mut self, request: &Request) -> Result<(), LaunchError> {
        if !is_ours(&self.client) {
            request.check_here()?;
        }
        self.client.spawn(request)
    }

    fn preset(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        // A request costs a round trip to the launcher; only spawned processes have such values.
        match std::env::var_os(SPAWNED) {
            Some(value) if value != "0" => self.client.get_raw(key),
            _ => Ok(None),
        }
    }

    fn tell_unreachable(&mut self, rank: u32) {
        if is_ours(&self.client) {
            // Without the launcher the job is ending anyway.
            let _ = self.client.tell_unreachable(rank);
        }
    }

    fn abort(&mut self, code: i32, why: &str) {
        // Our launcher prints the reason; others do not read it.
        if !is_ours(&self.client) {
            let rank = self.rank;
            nmad_words::tell_user(format_args!("nmad: rank {rank} ends the job with code {code}: {why}"));
        }
        // If the launcher is gone, the job is ending anyway.
        let _ = self.client.abort(code, why);
    }

    fn finish(self: Box<Self>) -> Result<(), LaunchError> {
        self.client.finalize()
    }
}
