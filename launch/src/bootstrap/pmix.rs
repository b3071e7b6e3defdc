//! Joining a job through PMIx.
//!
//! PMIx requires the owner of a key, and a rank waits long for a key that its owner never puts. So the
//! values that a rank puts between two fences travel as one block, under the number of the fence, and every
//! rank puts a block, even an empty one. Blocks are fetched when a requested key is not yet known.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use super::Bootstrap;
use crate::pmi::spawn::{PARENT_PORT, Request, STARTED_BY};
use crate::pmi::value;
use crate::pmix::library::{Client, Failure, Held, WHOLE_JOB};
use crate::{LaunchError, Secret};

/// The key under which rank 0 publishes the secret.
const SECRET_KEY: &str = "nmad-secret";

/// A rank of a job under a PMIx launcher.
pub struct Pmix {
    client: Client,
    job: String,
    size: u32,
    nodes: Vec<u32>,
    program: Option<u32>,
    secret: Secret,
    /// Time limit in seconds.
    limit_s: Option<u32>,
    /// Values that were put since the last fence.
    waiting: String,
    /// Keys that were put.
    used: HashSet<String>,
    /// Values that were fetched.
    values: HashMap<String, String>,
    fences: u32,
    /// Number of fetched blocks of each rank.
    fetched: Vec<u32>,
}

/// The launcher's variables.
pub struct Expected<'a> {
    /// `PMIX_RANK`.
    pub rank: u32,
    /// `PMIX_NAMESPACE`.
    pub job: &'a str,
}

impl Pmix {
    /// Joins: library, size, node map, secret.
    pub fn join(
        expected: &Expected<'_>,
        file: Option<&str>,
        limit_s: Option<u32>,
    ) -> Result<Pmix, LaunchError> {
        static JOINED: AtomicBool = AtomicBool::new(false);
        if JOINED.swap(true, Ordering::Relaxed) {
            return Err(LaunchError::AlreadyJoined);
        }
        let rank = expected.rank;
        let client = Client::join(&crate::pmix::find::candidates(file))
            .map_err(|tried| LaunchError::PmixLibrary { rank, tried })?
            .map_err(failed("joined through PMIx", limit_s))?;
        let job = client.job();
        if client.rank() != rank || job != expected.job {
            // If no launcher answers, the library makes a job of one rank.
            let (got, wanted) = (client.rank(), expected.job);
            let why = format!("PMIx calls this rank {got} of {job}, the environment rank {rank} of {wanted}");
            return Err(LaunchError::Refused { doing: "joined through PMIx".into(), why });
        }
        let size = match client.get(WHOLE_JOB, "pmix.job.size", limit_s) {
            Ok(Some(Held::Number(size))) if rank < size => size,
            Ok(found) => return Err(no_size(&found)),
            Err(why) => return Err(failed("asked how many ranks there are", limit_s)(why)),
        };
        let mut this = Pmix {
            nodes: nodes(&client, size, limit_s),
            program: number(&client, rank, "pmix.appnum", limit_s),
            client,
            job,
            size,
            secret: Secret::random()?,
            limit_s,
            waiting: String::new(),
            used: HashSet::new(),
            values: HashMap::new(),
            fences: 0,
            fetched: vec![0; size as usize],
        };
        this.share_secret()?;
        Ok(this)
    }

    /// Sends rank 0's secret to all ranks.
    fn share_secret(&mut self) -> Result<(), LaunchError> {
        if self.rank() == 0 {
            let secret = self.secret.to_hex();
            self.put(SECRET_KEY, &secret)?;
        }
        self.fence()?;
        self.fetch(0)?;
        let shared = self.values.get(SECRET_KEY).and_then(|text| Secret::from_hex(text));
        self.secret = shared.ok_or_else(|| LaunchError::Value {
            key: SECRET_KEY.into(),
            why: "rank 0 did not put 64 hexadecimal digits; do all ranks run the same program?".into(),
        })?;
        Ok(())
    }

    /// Fetches the values that `rank` put before the last fence.
    fn fetch(&mut self, rank: u32) -> Result<(), LaunchError> {
        let broken = |key: &str, why: &str| LaunchError::Value { key: key.into(), why: why.into() };
        while self.fetched[rank as usize] < self.fences {
            let key = block_key(self.fetched[rank as usize]);
            let doing = format!("asked rank {rank} for key {key}");
            let held = self.client.get(rank, &key, self.limit_s).map_err(failed(&doing, self.limit_s))?;
            let Some(Held::Text(block)) = held else {
                return Err(broken(&key, "it is not there, although its rank was in the fence"));
            };
            let values =
                read_block(&block).ok_or_else(|| broken(&key, "it is no list of keys and values"))?;
            self.values.extend(values);
            self.fetched[rank as usize] += 1;
        }
        Ok(())
    }
}

/// Ends the job of a process that does not join it.
pub fn refuse(rank: u32, file: Option<&str>, code: i32, why: &str) -> Result<(), LaunchError> {
    let client = Client::join(&crate::pmix::find::candidates(file))
        .map_err(|tried| LaunchError::PmixLibrary { rank, tried })?
        .map_err(failed("joined through PMIx", None))?;
    client.abort(code, why);
    Ok(())
}

/// Returns the node of each rank; each rank gets its own if the launcher does not say.
fn nodes(client: &Client, size: u32, limit_s: Option<u32>) -> Vec<u32> {
    let node = |rank| number(client, rank, "pmix.nodeid", limit_s);
    (0..size).map(node).collect::<Option<Vec<u32>>>().unwrap_or_else(|| (0..size).collect())
}

/// Returns a number that the launcher put for a rank, if any.
fn number(client: &Client, rank: u32, key: &str, limit_s: Option<u32>) -> Option<u32> {
    match client.get(rank, key, limit_s) {
        Ok(Some(Held::Number(number))) => Some(number),
        _ => None,
    }
}

fn block_key(fence: u32) -> String {
    format!("nmad-block-{fence}")
}

/// Appends a line to a block.
fn write_line(block: &mut String, key: &str, value: &str) {
    block.push_str(&format!("{key} {}\n", value::escape(value)));
}

fn read_block(block: &str) -> Option<Vec<(String, String)>> {
    let line = |line: &str| {
        let (key, value) = line.split_once(' ')?;
        Some((key.to_owned(), value::unescape(value)?))
    };
    block.lines().map(line).collect()
}

/// Returns the rank that probably put a key: the number at its end.
fn owner(key: &str) -> Option<u32> {
    key.rsplit_once('-')?.1.parse().ok()
}

#[cold]
fn no_size(found: &Option<Held>) -> LaunchError {
    let why = format!("it says {found:?} instead of a number above this rank");
    LaunchError::Refused { doing: "asked how many ranks there are".into(), why }
}

/// For `map_err`: converts the library's failure while this rank was `doing` something.
fn failed(doing: &str, limit_s: Option<u32>) -> impl FnOnce(Failure) -> LaunchError {
    let doing = doing.to_owned();
    move |why| match why {
        Failure::Gone => LaunchError::Closed { doing },
        Failure::Timeout => LaunchError::Timeout { doing, limit_s: limit_s.unwrap_or(0).into() },
        Failure::Refused(why) => LaunchError::Refused { doing, why },
    }
}

impl Bootstrap for Pmix {
    fn rank(&self) -> u32 {
        self.client.rank()
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), LaunchError> {
        // The rules of other launchers apply, so that a program works under all of them.
        value::check_key(key, crate::pmi::server::KEY_MAX)?;
        if value.len() > value::VALUE_MAX {
            let why = format!("it is longer than {} bytes", value::VALUE_MAX);
            return Err(LaunchError::Value { key: key.into(), why });
        }
        if !self.used.insert(key.to_owned()) {
            let why = "it was put before".into();
            return Err(LaunchError::Refused { doing: format!("put key {key}"), why });
        }
        write_line(&mut self.waiting, key, value);
        Ok(())
    }

    fn fence(&mut self) -> Result<(), LaunchError> {
        let block = std::mem::take(&mut self.waiting);
        let key = block_key(self.fences);
        self.client.put(&key, &block).map_err(failed(&format!("put key {key}"), self.limit_s))?;
        self.client.fence(self.limit_s).map_err(failed("waited in a fence", self.limit_s))?;
        self.fences += 1;
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        value::check_key(key, crate::pmi::server::KEY_MAX)?;
        let likely = owner(key).filter(|rank| *rank < self.size);
        for rank in likely.into_iter().chain(0..self.size) {
            if self.values.contains_key(key) {
                break;
            }
            self.fetch(rank)?;
        }
        Ok(self.values.get(key).cloned())
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
        &self.job
    }

    fn spawn(&mut self, request: &Request) -> Result<(), LaunchError> {
        request.check_here()?;
        let port = request.preput.iter().find(|(key, _)| key == PARENT_PORT);
        let port = port.map_or("", |(_, value)| value.as_str());
        let started = self.client.spawn(&request.programs, &format!("{STARTED_BY}={} {port}", self.job));
        started.map_err(|failure| match failure {
            Failure::Refused(why) => {
                LaunchError::NoSpawn(format!("the launcher has started no processes: {why}"))
            }
            failure => failed("asked for more processes", self.limit_s)(failure),
        })
    }

    fn preset(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        let variable = std::env::var(STARTED_BY).ok().filter(|_| key == PARENT_PORT);
        let Some((job, port)) = variable.as_deref().and_then(|value| value.split_once(' ')) else {
            return Ok(None);
        };
        // A further job that a spawned process starts inherits the variable too.
        let is_ours = match self.client.get(self.rank(), "pmix.parent", self.limit_s) {
            Ok(Some(Held::Job(parent))) => parent == job,
            _ => job != self.job,
        };
        Ok(is_ours.then(|| port.to_string()))
    }

    fn abort(&mut self, code: i32, why: &str) {
        let rank = self.rank();
        nmad_words::tell_user(format_args!("nmad: rank {rank} ends the job with code {code}: {why}"));
        self.client.abort(code, why);
    }

    fn finish(self: Box<Self>) -> Result<(), LaunchError> {
        self.client.finish().map_err(failed("said goodbye", self.limit_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_bring_back_what_was_put() {
        let mut block = String::new();
        let all = [("card-0", "two words\nand a line"), ("plan", ""), ("x", "\0 100% é")];
        all.iter().for_each(|(key, value)| write_line(&mut block, key, value));
        let read = read_block(&block).unwrap();
        assert_eq!(read.len(), all.len());
        for ((key, value), wanted) in read.iter().zip(all) {
            assert_eq!((key.as_str(), value.as_str()), wanted);
        }
        assert_eq!(read_block(""), Some(vec![]));
        assert_eq!(read_block("no-value\n"), None);
        assert_eq!(read_block("key %zz\n"), None);
    }

    #[test]
    fn keys_name_their_ranks() {
        assert_eq!((owner("card-17"), owner("sample-plan"), owner("x")), (Some(17), None, None));
    }
}
