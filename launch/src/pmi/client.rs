//! The rank's side of PMI-1: one request, one answer, each with a bounded wait.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::line::{Line, LineBuffer};
use super::{delta, spawn, value};
use crate::LaunchError;

/// Longest line for Slurm and old MPICH, which read lines, with their own words, into 1024 bytes.
const SAFE_LINE: usize = 1000;

/// Word of an answer in which our launcher gives the reason of a refusal.
pub(super) const MESSAGE: &str = "nmad_msg";

/// Separates values in an answer with many; [`value::escape`] writes it in another form.
pub const VALUES_END: char = '|';

/// Time limit of an answer that does not depend on other ranks.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Time limit for the launcher to end a rank that asked for it.
const ABORT_LIMIT: Duration = Duration::from_secs(3);

/// An initialised connection to the launcher.
#[derive(Debug)]
pub struct Client {
    fd: OwnedFd,
    buffer: LineBuffer,
    /// Time limit of every wait, including fences, if the user set one.
    limit: Option<Duration>,
    kvs: String,
    key_max: usize,
    value_max: usize,
}

impl Client {
    /// Greets the launcher and asks for its limits and the name of the key-value space.
    ///
    /// `limit` bounds every wait. `None`: answers are bounded by 60 s, and a fence ends when the last rank
    /// comes or the launcher goes. `is_ours`: the launcher is ours and checks our version.
    ///
    /// # Errors
    /// The launcher is gone, silent, or does not speak PMI-1.
    pub fn connect(fd: OwnedFd, limit: Option<Duration>, is_ours: bool) -> Result<Client, LaunchError> {
        let mut client =
            Client { fd, buffer: LineBuffer::default(), limit, kvs: String::new(), key_max: 0, value_max: 0 };
        let library = if is_ours { concat!(" library=", env!("CARGO_PKG_VERSION")) } else { "" };
        let hello = &format!("cmd=init pmi_version=1 pmi_subversion=1{library}");
        let answer = client.ask(hello, "response_to_init", "said hello")?;
        answer.accepted()?;
        if answer.number::<u32>("pmi_version")? != 1 {
            return Err(answer.wrong("it is not version 1 of PMI"));
        }
        let answer = client.ask("cmd=get_maxes", "maxes", "asked for the limits")?;
        client.key_max = answer.number("keylen_max")?;
        client.value_max = answer.number("vallen_max")?;
        let answer = client.ask("cmd=get_my_kvsname", "my_kvsname", "asked for the name of the job")?;
        client.kvs = answer.need("kvsname")?.to_owned();
        Ok(client)
    }

    /// Returns the name of the key-value space, which is unique for a job under one launcher.
    pub fn kvs(&self) -> &str {
        &self.kvs
    }

    /// Puts a value of any length and content; other ranks can get it after the next fence.
    ///
    /// # Errors
    /// A bad key, a value beyond [`value::VALUE_MAX`], a key that was put before, or a lost launcher.
    pub fn put(&mut self, key: &str, value: &str) -> Result<(), LaunchError> {
        value::check_key(key, self.key_max)?;
        for (number, part) in value::split(key, value, self.part_max(key))?.iter().enumerate() {
            let key = value::part_key(key, number);
            let line = format!("cmd=put kvsname={} key={key} value={part}", self.kvs);
            self.ask(&line, "put_result", format!("put key {key}"))?.accepted()?;
        }
        Ok(())
    }

    /// Returns the value that a rank put before the last fence, if any.
    ///
    /// # Errors
    /// A bad key, a value that was not written by [`Client::put`], or a lost launcher.
    pub fn get(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        value::check_key(key, self.key_max)?;
        let first = self.get_raw(key)?;
        first.map(|first| self.whole(key, &first)).transpose()
    }

    /// Passes the values of the keys `name` with each number below `count` behind it to `take`, as
    /// [`Client::get`] returns one. Our launcher sends many of them in a line; others do not know the
    /// request.
    ///
    /// # Errors
    /// As for [`Client::get`].
    pub fn get_each(
        &mut self,
        name: &str,
        count: u32,
        take: &mut dyn FnMut(Option<String>),
    ) -> Result<(), LaunchError> {
        value::check_key(&format!("{name}{count}"), self.key_max)?;
        let mut from = 0;
        while from < count {
            let line = format!("cmd=nmad_values kvsname={} name={name} from={from} count={count}", self.kvs);
            let answer = self.ask(&line, "nmad_values", format!("asked for keys from {name}{from} on"))?;
            answer.accepted()?;
            let mut first = String::new();
            for text in answer.need("values")?.split(VALUES_END) {
                let key = format!("{name}{from}");
                let Some(value) = delta::read(&first, text) else {
                    return Err(LaunchError::Value { key, why: "the launcher sends it malformed".into() });
                };
                first = value;
                if from >= count {
                    let why = format!("the launcher sends more than the {count} that were asked for");
                    return Err(LaunchError::Value { key, why });
                }
                take(if first.is_empty() { None } else { Some(self.whole(&key, &first)?) });
                from += 1;
            }
        }
        Ok(())
    }

    /// Returns the value of a key whose first part is known.
    fn whole(&mut self, key: &str, first: &str) -> Result<String, LaunchError> {
        let broken = |why: &str| LaunchError::Value { key: key.to_owned(), why: why.to_owned() };
        let (count, text) = value::head(first).ok_or_else(|| broken("it does not begin with a count"))?;
        let mut written = text.to_owned();
        for number in 1..count {
            let part = self.get_raw(&value::part_key(key, number))?;
            written.push_str(&part.ok_or_else(|| broken("a part of it is missing"))?);
            if written.len() > value::VALUE_MAX {
                return Err(broken("it is too long"));
            }
        }
        value::unescape(&written).ok_or_else(|| broken("it has a malformed % sequence"))
    }

    /// Returns a raw value of the launcher, for the launcher's own keys (`PMI_process_mapping`).
    ///
    /// # Errors
    /// A lost launcher, or an answer without a value. PMI-1 does not give the reason of a refusal, so every
    /// refusal returns `None`.
    pub fn get_raw(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        let line = format!("cmd=get kvsname={} key={key}", self.kvs);
        let answer = self.ask(&line, "get_result", format!("asked for key {key}"))?;
        if answer.accepted().is_err() {
            return Ok(None);
        }
        answer.need("value").map(|value| Some(value.to_owned()))
    }

    /// Returns the number of the program that this rank runs; `None` if the launcher refuses to tell.
    ///
    /// # Errors
    /// A lost launcher, or an invalid answer.
    pub fn program(&mut self) -> Result<Option<u32>, LaunchError> {
        match self.ask("cmd=get_appnum", "appnum", "asked for the number of its program") {
            Ok(answer) => Ok(answer.number("appnum").ok()),
            Err(LaunchError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks the launcher to start processes as a job of their own.
    ///
    /// # Errors
    /// A lost launcher, or a refusal.
    pub fn spawn(&mut self, request: &spawn::Request) -> Result<(), LaunchError> {
        let lines = spawn::write(request).map_err(LaunchError::NoSpawn)?;
        let doing = "asked for more processes";
        self.ask(&lines, "spawn_result", doing).and_then(|answer| answer.accepted()).map_err(|error| {
            match error {
                LaunchError::Refused { why, .. } => {
                    LaunchError::NoSpawn(format!("the launcher has started no processes: {why}"))
                }
                error => error,
            }
        })
    }

    /// Waits until all ranks have entered the fence.
    ///
    /// # Errors
    /// A lost launcher; a refusal; the user's limit, if there is one.
    pub fn fence(&mut self) -> Result<(), LaunchError> {
        let limit = self.limit.unwrap_or(Duration::MAX);
        self.ask_within("cmd=barrier_in", "barrier_out", "waited in a fence".into(), limit)?.accepted()
    }

    /// Finalizes: the launcher accepts the end of the process afterwards.
    ///
    /// # Errors
    /// A lost launcher.
    pub fn finalize(mut self) -> Result<(), LaunchError> {
        self.ask("cmd=finalize", "finalize_ack", "said goodbye").map(drop)
    }

    /// Asks the launcher to end the job with exit code `code`. There is no answer; the call returns when
    /// the launcher closes the connection or the time limit is over.
    ///
    /// # Errors
    /// A lost launcher.
    pub fn abort(&mut self, code: i32, why: &str) -> Result<(), LaunchError> {
        let mut why = value::escape(why);
        why.truncate(SAFE_LINE - 100);
        let doing = "asked to end the job";
        self.send(&format!("cmd=abort exitcode={code} message={why}"), doing)?;
        // The launcher kills this process now. If this process ended earlier, others might see its end
        // first and report another reason.
        let _ = self.receive(doing, ABORT_LIMIT);
        Ok(())
    }

    /// Tells our launcher that a rank cannot be reached; there is no answer.
    ///
    /// # Errors
    /// A lost launcher.
    pub fn tell_unreachable(&mut self, rank: u32) -> Result<(), LaunchError> {
        self.send(&format!("cmd=nmad_unreachable rank={rank}"), "said that a rank cannot be reached")
    }

    /// Returns the longest part of a value, so that neither it nor its line exceeds a launcher's limit.
    fn part_max(&self, key: &str) -> usize {
        let words = "cmd=put kvsname= key= value=".len() + self.kvs.len() + key.len() + value::SUFFIX_MAX;
        // One byte less than the limit, since some launchers count the terminator.
        self.value_max.saturating_sub(1).min(SAFE_LINE.saturating_sub(words))
    }

    fn ask(&mut self, line: &str, want: &str, doing: impl Into<String>) -> Result<Answer, LaunchError> {
        self.ask_within(line, want, doing.into(), self.limit.unwrap_or(ANSWER_LIMIT))
    }

    fn ask_within(
        &mut self,
        line: &str,
        want: &str,
        doing: String,
        limit: Duration,
    ) -> Result<Answer, LaunchError> {
        self.send(line, &doing)?;
        let line = self.receive(&doing, limit)?;
        let answer = Answer { line, doing };
        match answer.parsed()?.command {
            command if command == want => Ok(answer),
            // Our launcher and Slurm name an unknown request in the answer; the reason is more useful.
            _ if answer.parsed()?.get("rc").is_some_and(|rc| rc != "0") => Err(answer.refused()),
            _ => Err(answer.wrong(&format!("cmd={want} was expected"))),
        }
    }

    fn send(&mut self, line: &str, doing: &str) -> Result<(), LaunchError> {
        let line = format!("{line}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            // A C program does not ignore SIGPIPE, and a dead launcher must not kill it silently.
            let sent = match rustix::net::send(&self.fd, rest, SendFlags::NOSIGNAL) {
                Err(Errno::NOTSOCK) => rustix::io::write(&self.fd, rest),
                other => other,
            };
            match sent {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.wait(PollFlags::OUT, doing, Instant::now(), self.limit.unwrap_or(ANSWER_LIMIT))?;
                }
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(closed(doing)),
                Err(error) => return Err(LaunchError::system(talking(doing))(error)),
            }
        }
        Ok(())
    }

    fn receive(&mut self, doing: &str, limit: Duration) -> Result<String, LaunchError> {
        let start = Instant::now();
        loop {
            let line = self.buffer.next_line().map_err(|why| LaunchError::Protocol {
                doing: doing.to_owned(),
                why,
                line: String::new(),
            })?;
            if let Some(line) = line {
                return Ok(line);
            }
            self.wait(PollFlags::IN, doing, start, limit)?;
            let mut bytes = [0; 16384];
            match rustix::io::read(&self.fd, &mut bytes) {
                Ok(0) | Err(Errno::CONNRESET) => return Err(closed(doing)),
                Ok(count) => self.buffer.push(&bytes[..count]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(LaunchError::system(talking(doing))(error)),
            }
        }
    }

    /// Waits for the descriptor until `start + limit`.
    fn wait(&self, what: PollFlags, doing: &str, start: Instant, limit: Duration) -> Result<(), LaunchError> {
        loop {
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(LaunchError::Timeout { doing: doing.to_owned(), limit_s: limit.as_secs() });
            }
            // Endless waits are cut into hours, so that no clock type overflows.
            let turn = Timespec::try_from(left.min(Duration::from_secs(3600))).ok();
            match poll(&mut [PollFd::new(&self.fd, what)], turn.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(LaunchError::system(talking(doing))(error)),
            }
        }
    }
}

/// An answer of the launcher, with the request that it answers.
struct Answer {
    line: String,
    doing: String,
}

impl Answer {
    fn parsed(&self) -> Result<Line<'_>, LaunchError> {
        Line::parse(&self.line).map_err(|why| self.wrong(&why))
    }

    fn need(&self, name: &str) -> Result<&str, LaunchError> {
        self.parsed()?.need(name).map_err(|why| self.wrong(&why))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, LaunchError> {
        self.parsed()?.number(name).map_err(|why| self.wrong(&why))
    }

    /// An answer without `rc=` is a success: old launchers omit it.
    fn accepted(&self) -> Result<(), LaunchError> {
        match self.parsed()?.get("rc") {
            None | Some("0") => Ok(()),
            Some(_) => Err(self.refused()),
        }
    }

    fn refused(&self) -> LaunchError {
        // Our launcher gives a reason; answers of other launchers are reported as they are.
        let why = self.parsed().ok().and_then(|line| value::unescape(line.get(MESSAGE)?));
        let why = why.unwrap_or_else(|| shortened(&self.line));
        LaunchError::Refused { doing: self.doing.clone(), why }
    }

    fn wrong(&self, why: &str) -> LaunchError {
        LaunchError::Protocol { doing: self.doing.clone(), why: why.into(), line: shortened(&self.line) }
    }
}

fn shortened(line: &str) -> String {
    line.chars().take(200).collect()
}

fn closed(doing: &str) -> LaunchError {
    LaunchError::Closed { doing: doing.to_owned() }
}

fn talking(doing: &str) -> String {
    format!("talking to the launcher, when this rank {doing}")
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
