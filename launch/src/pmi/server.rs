//! The launcher's side of PMI-1, without I/O: lines in, events out.
//!
//! The server records which ranks joined and left, keeps the key-value space, and detects fences that can
//! never complete. A malformed line is answered and reported, and changes nothing.
//!
//! A job on several hosts has a server on each, for the ranks there ([`Server::part`]). It collects the
//! values of its ranks until all of them are in a fence, sends them up with [`Event::Fence`], and receives
//! the values of all hosts with [`Server::release`]. So each rank gets values from its own host. Members
//! are numbered from 0 on each host; messages for the user have ranks.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::client::{MESSAGE, VALUES_END};
use super::line::Line;
use super::{LINE_MAX, delta, spawn, value};

/// Longest key in bytes. The limits are Hydra's, which all clients are known to accept.
pub const KEY_MAX: usize = 64;
/// Longest value in bytes.
pub const VALUE_MAX: usize = 1024;
/// Longest name of a key-value space in bytes.
pub const NAME_MAX: usize = 256;
/// Most lines of a block; later ones are dropped.
const BLOCK_MAX: usize = 1 << 14;
/// Longest answer with many values in bytes. It is longer than one value and its words.
const VALUES_MAX: usize = LINE_MAX / 2;
/// Limit of the number of such answers that are kept, so that a rank cannot fill the memory.
const ANSWERS_MAX: usize = 1 << 12;
/// Limit of all keys and values together in bytes, so that a rank cannot fill the memory.
const SPACE_MAX: usize = 1 << 30;

/// Result of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Send this line (without its newline) to that member.
    Reply(u32, String),
    /// All members are in a fence that the other hosts have to join; with the values put since the last
    /// one.
    Fence(Vec<(String, String)>),
    /// A rank asks to end the job.
    Abort {
        /// The asking rank.
        rank: u32,
        /// The requested exit code of the job.
        code: i32,
        /// The reason, may be empty.
        why: String,
    },
    /// A rank cannot reach another one, which the others shall go on without.
    Unreachable {
        /// The rank that says so.
        by: u32,
        /// The rank that cannot be reached.
        rank: u32,
    },
    /// A member asks for more processes.
    Spawn(u32, spawn::Request),
    /// A message for the user.
    Note(String),
}

/// A rank that will not join any further fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// The rank.
    pub rank: u32,
    /// Whether its process is gone; otherwise it has finalized.
    pub gone: bool,
}

impl Absent {
    /// Returns the reason why rank `waiting` waits forever.
    pub fn keeps(self, waiting: u32) -> String {
        let how = if self.gone { "has ended" } else { "has said goodbye" };
        let rank = self.rank;
        format!("rank {waiting} waits in a fence that rank {rank} will never join, since it {how}")
    }
}

/// PMI state of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Not initialised; many programs never are.
    Silent,
    /// Initialised and not yet finalized.
    Joined,
    /// Finalized.
    Finalized,
}

#[derive(Debug, Clone)]
struct Member {
    rank: u32,
    /// Number of its program.
    program: u32,
    phase: Phase,
    waiting: bool,
    gone: bool,
    /// Inside `mcmd=NAME ... endcmd`: the name and the lines so far.
    block: Option<(String, Vec<String>)>,
    /// The earlier blocks of a request.
    asks: spawn::Reading,
}

/// The version of this launcher.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The state of one job.
#[derive(Debug)]
pub struct Server {
    name: String,
    members: Vec<Member>,
    space: HashMap<String, String>,
    space_len: usize,
    /// Answers with many values: by name, first number and end.
    answers: HashMap<(String, u32, u32), String>,
    /// Number of ranks on all hosts.
    size: u32,
    /// Values put since the last fence, if other hosts need them.
    fresh: Option<Vec<(String, String)>>,
    /// The user was told that a rank uses another library.
    was_reported: bool,
}

impl Server {
    /// Makes the server of a job named `name` with `counts` ranks of each program; `mapping` is the node
    /// map.
    pub fn new(name: &str, counts: &[u32], mapping: &str) -> Server {
        let programs = (0..).zip(counts);
        let programs = programs.flat_map(|(program, &count)| std::iter::repeat_n(program, count as usize));
        Server::of(name, (0..).zip(programs), mapping)
    }

    /// Makes the server for the ranks of a job of `size` ranks that are on one host, each with its program.
    pub fn part(name: &str, ranks: impl Iterator<Item = (u32, u32)>, size: u32, mapping: &str) -> Server {
        Server { size, fresh: Some(Vec::new()), ..Server::of(name, ranks, mapping) }
    }

    fn of(name: &str, ranks: impl Iterator<Item = (u32, u32)>, mapping: &str) -> Server {
        let member = |(rank, program)| Member {
            rank,
            program,
            phase: Phase::Silent,
            waiting: false,
            gone: false,
            block: None,
            asks: spawn::Reading::default(),
        };
        let members: Vec<Member> = ranks.map(member).collect();
        let space = HashMap::from([(crate::mapping::KEY.to_owned(), mapping.to_owned())]);
        let size = members.len() as u32;
        Server {
            name: name.to_owned(),
            members,
            space,
            space_len: 0,
            answers: HashMap::new(),
            size,
            fresh: None,
            was_reported: false,
        }
    }

    /// Returns the PMI state of a rank.
    pub fn phase(&self, rank: u32) -> Phase {
        self.members[rank as usize].phase
    }

    /// Handles one line of a rank.
    pub fn handle(&mut self, rank: u32, text: &str) -> Vec<Event> {
        if let Some(block) = self.members[rank as usize].block.take() {
            return self.in_block(rank, block, text);
        }
        if let Some(name) = text.strip_prefix("mcmd=") {
            self.members[rank as usize].block = Some((name.trim().to_owned(), Vec::new()));
            return Vec::new();
        }
        match Line::parse(text) {
            Ok(line) => {
                self.command(rank, &line).unwrap_or_else(|why| self.bad(rank, line.command, text, &why))
            }
            Err(why) => self.bad(rank, "unknown", text, &why),
        }
    }

    /// Records the end of a rank's process: it will not join any further fence.
    pub fn gone(&mut self, rank: u32) {
        let member = &mut self.members[rank as usize];
        member.gone = true;
        member.waiting = false;
    }

    /// Returns the first rank that waits in a fence, if any.
    pub fn waiting(&self) -> Option<u32> {
        self.members.iter().find(|member| member.waiting).map(|member| member.rank)
    }

    /// Returns the first rank that will not join any further fence, if any.
    pub fn absent(&self) -> Option<Absent> {
        let absent = self.members.iter().find(|member| member.gone || member.phase == Phase::Finalized)?;
        Some(Absent { rank: absent.rank, gone: absent.gone })
    }

    /// Returns the reason why the current fence can never complete, if so.
    pub fn stuck(&self) -> Option<String> {
        Some(self.absent()?.keeps(self.waiting()?))
    }

    /// Releases the fence when all hosts are in it, with the values that their ranks put.
    pub fn release(&mut self, put: Vec<(String, String)>) -> Vec<Event> {
        self.space.reserve(put.len());
        self.space.extend(put);
        self.answers.clear();
        self.members.iter_mut().for_each(|m| m.waiting = false);
        let members = 0..self.members.len() as u32;
        members.map(|member| Event::Reply(member, "cmd=barrier_out rc=0".into())).collect()
    }

    fn command(&mut self, rank: u32, line: &Line<'_>) -> Result<Vec<Event>, String> {
        let reply = |text: String| Ok(vec![Event::Reply(rank, text)]);
        match line.command {
            "init" => self.init(rank, line),
            "get_maxes" => reply(format!(
                "cmd=maxes rc=0 kvsname_max={NAME_MAX} keylen_max={KEY_MAX} vallen_max={VALUE_MAX}"
            )),
            "get_appnum" => reply(format!("cmd=appnum rc=0 appnum={}", self.members[rank as usize].program)),
            "get_my_kvsname" => reply(format!("cmd=my_kvsname rc=0 kvsname={}", self.name)),
            "get_universe_size" => reply(format!("cmd=universe_size rc=0 size={}", self.size)),
            "put" => reply(answer("put_result", self.put(line)?)),
            "get" => reply(match self.get(line)? {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".into(),
            }),
            "nmad_values" => reply(self.values(line)?),
            "barrier_in" => self.barrier_in(rank),
            "finalize" => {
                self.members[rank as usize].phase = Phase::Finalized;
                reply("cmd=finalize_ack rc=0".into())
            }
            "abort" => Ok(vec![abort(self.members[rank as usize].rank, line)]),
            "nmad_unreachable" => Ok(vec![Event::Unreachable {
                by: self.members[rank as usize].rank,
                rank: line.number("rank")?,
            }]),
            "publish_name" => reply(answer("publish_result", Err("names_are_not_supported"))),
            "unpublish_name" => reply(answer("unpublish_result", Err("names_are_not_supported"))),
            "lookup_name" => reply(answer("lookup_result", Err("names_are_not_supported"))),
            _ => Err("this launcher does not know this command".into()),
        }
    }

    fn init(&mut self, rank: u32, line: &Line<'_>) -> Result<Vec<Event>, String> {
        let version: u32 = line.number("pmi_version")?;
        // A client of a later subversion falls back to the one in the answer.
        let rc = if version == 1 { 0 } else { -1 };
        if rc == 0 {
            self.members[rank as usize].phase = Phase::Joined;
        }
        let text = format!("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={rc}");
        let mut events = vec![Event::Reply(rank, text)];
        // One message is enough: other ranks of a host find the same library.
        if !self.was_reported
            && let Some(why) = other_library(self.members[rank as usize].rank, line.get("library"))
        {
            self.was_reported = true;
            events.push(Event::Note(why));
        }
        Ok(events)
    }

    fn put(&mut self, line: &Line<'_>) -> Result<Result<(), &'static str>, String> {
        let (key, value) = (line.need("key")?, line.need("value")?);
        let len = key.len() + value.len();
        Ok(match line.need("kvsname")? {
            name if name != self.name => Err("unknown_kvsname"),
            _ if key.is_empty() || key.len() > KEY_MAX => Err("key_too_long"),
            _ if value.len() > VALUE_MAX => Err("value_too_long"),
            _ if self.space.contains_key(key) => Err("duplicate_key"),
            _ if self.space_len + len > SPACE_MAX => Err("key_value_space_full"),
            _ => {
                self.space_len += len;
                self.answers.clear();
                self.space.insert(key.to_owned(), value.to_owned());
                if let Some(fresh) = &mut self.fresh {
                    fresh.push((key.to_owned(), value.to_owned()));
                }
                Ok(())
            }
        })
    }

    fn get(&self, line: &Line<'_>) -> Result<Option<&str>, String> {
        let key = line.need("key")?;
        let ours = line.need("kvsname")? == self.name;
        Ok(self.space.get(key).filter(|_| ours).map(String::as_str))
    }

    /// Answers a request of our library for the values of numbered keys with as many as fit into a line, each
    /// as its difference from the one before ([`delta`]).
    /// With a request for each value, a host would get its number of ranks times that of the job. All ranks
    /// request the same values, so answers are cached until a value is added.
    fn values(&mut self, line: &Line<'_>) -> Result<String, String> {
        let (name, from, count) = (line.need("name")?, line.number("from")?, line.number("count")?);
        if line.need("kvsname")? != self.name {
            return Ok("cmd=nmad_values rc=-1 msg=unknown_kvsname".into());
        }
        let asked = (name.to_owned(), from, count);
        if let Some(answer) = self.answers.get(&asked) {
            return Ok(answer.clone());
        }
        let answer = self.numbered(name, from..count);
        if self.answers.len() >= ANSWERS_MAX {
            self.answers.clear();
        }
        self.answers.insert(asked, answer.clone());
        Ok(answer)
    }

    fn numbered(&self, name: &str, numbers: Range<u32>) -> String {
        let mut answer = String::from("cmd=nmad_values rc=0 values=");
        let mut before = "";
        for number in numbers.clone() {
            let value = self.space.get(&format!("{name}{number}")).map_or("", |value| value);
            let end = answer.len();
            if number > numbers.start {
                answer.push(VALUES_END);
            }
            delta::write(before, value, &mut answer);
            if answer.len() > VALUES_MAX {
                answer.truncate(end);
                break;
            }
            before = value;
        }
        answer
    }

    fn barrier_in(&mut self, rank: u32) -> Result<Vec<Event>, String> {
        let member = &mut self.members[rank as usize];
        if member.waiting {
            return Err("this rank waits in a fence already".into());
        }
        member.waiting = true;
        if !self.members.iter().all(|m| m.waiting) {
            return Ok(Vec::new());
        }
        match &mut self.fresh {
            Some(fresh) => Ok(vec![Event::Fence(std::mem::take(fresh))]),
            None => Ok(self.release(Vec::new())),
        }
    }

    fn bad(&self, member: u32, command: &str, text: &str, why: &str) -> Vec<Event> {
        let rank = self.members[member as usize].rank;
        let text: String = text.chars().take(100).collect();
        let words = words(why);
        vec![
            Event::Reply(member, format!("cmd={command}_result rc=-1 msg={words}")),
            Event::Note(format!("rank {rank} sent {text:?}, which is not PMI-1: {why}")),
        ]
    }

    /// Handles a line of a block of several lines.
    fn in_block(&mut self, rank: u32, (name, mut lines): (String, Vec<String>), text: &str) -> Vec<Event> {
        let member = &mut self.members[rank as usize];
        if text.trim() != "endcmd" {
            // A rank must not fill the memory with endless lines.
            if lines.len() < BLOCK_MAX {
                lines.push(text.to_owned());
            }
            member.block = Some((name, lines));
            return Vec::new();
        }
        if name != "spawn" {
            let note =
                format!("rank {} asked for `{name}`, which this launcher does not support", member.rank);
            return vec![refusal(rank, &name, &format!("{name} is not supported")), Event::Note(note)];
        }
        match member.asks.block(&lines) {
            Ok(None) => Vec::new(),
            Ok(Some(request)) => vec![Event::Spawn(rank, request)],
            Err(why) => {
                let note = format!("rank {} asked for processes in a wrong way: {why}", member.rank);
                vec![refusal(rank, &name, &why), Event::Note(note)]
            }
        }
    }

    /// Answers a spawn request: with the number of processes, or with the reason of the refusal.
    pub fn spawned(member: u32, started: Result<u32, &str>) -> Event {
        match started {
            Ok(count) => {
                let codes = vec!["0"; count as usize].join(",");
                Event::Reply(member, format!("cmd=spawn_result rc=0 errcodes={codes}"))
            }
            Err(why) => refusal(member, "spawn", why),
        }
    }

    /// Puts an initial value.
    pub fn preset(&mut self, key: &str, value: &str) {
        self.space.insert(key.to_owned(), value.to_owned());
    }
}

/// Refuses a request: our library reads the reason from a word of its own, others from `msg`, in one word.
fn refusal(member: u32, name: &str, why: &str) -> Event {
    let (word, ours) = (words(why), value::escape(why));
    Event::Reply(member, format!("cmd={name}_result rc=-1 errcodes=-1 msg={word} {MESSAGE}={ours}"))
}

/// Converts a text to one word.
fn words(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "./:-".contains(c) { c } else { '_' }).collect()
}

fn answer(command: &str, result: Result<(), &'static str>) -> String {
    match result {
        Ok(()) => format!("cmd={command} rc=0 msg=success"),
        Err(why) => format!("cmd={command} rc=-1 msg={why}"),
    }
}

fn abort(rank: u32, line: &Line<'_>) -> Event {
    let code = line.number("exitcode").unwrap_or(1);
    let why = line.get("message").and_then(value::unescape).unwrap_or_default();
    Event::Abort { rank, code, why }
}

/// Returns the message for the user if a rank's library is not that of this launcher. `version` is the one
/// that a rank of ours announces.
fn other_library(rank: u32, version: Option<&str>) -> Option<String> {
    let what = match version {
        Some(OWN_VERSION) => return None,
        Some(version) => format!("version {version} of NewMadeleine, and this launcher is {OWN_VERSION}"),
        None => "another MPI than NewMadeleine".into(),
    };
    Some(format!(
        "rank {rank} uses {what}: does LD_LIBRARY_PATH or LD_PRELOAD hide the library? ldd shows it"
    ))
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
