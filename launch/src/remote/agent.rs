//! The agent of one host: starts the ranks there and connects them with the head.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::channel::Channel;
use super::crew::{self, Crew};
use super::join::{candidates, join};
use super::message::{Down, Intro, JobDown, Node, Up};
use super::relay::{self, Relay};
use super::starter::Leaders;
use crate::local::SPEAKER;
use crate::local::run::wait_for;
use crate::local::signals::{Request, Signals};
use crate::{LaunchError, host_name};

/// Time limit of the first line, which arrives at once if it was sent.
const FIRST_LINE: Duration = Duration::from_secs(60);

/// Longest first line in bytes; more than any job needs.
const LINE_MAX: u64 = 64 << 20;

/// Runs an agent with the instructions in the file `letter`, or else on standard input. Errors go to
/// standard error, which leads to the head.
pub fn main(letter: Option<&str>) -> ExitCode {
    match serve(letter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            nmad_words::tell_user(format_args!("{SPEAKER}: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(letter: Option<&str>) -> Result<(), String> {
    let intro = Intro::from_line(&first_line(letter)?)?;
    let node = number(&intro.node)?;
    let signals = Signals::catch().map_err(|error| error.to_string())?;
    let mut leaders = Leaders::default();
    leaders.start_tree(&intro.below, &intro).map_err(|error| error.to_string())?;
    let head = join(&intro.secret, &candidates(&intro.addresses), node)?;
    let (crew, relay) = (Crew::new(), Relay::new(intro.secret, node));
    let mut agent = Agent { crew, leaders, head, relay, signals, watches: intro.input_stays };
    while agent.turn().map_err(|error| error.to_string())? {}
    Ok(())
}

fn first_line(letter: Option<&str>) -> Result<String, String> {
    if let Some(path) = letter {
        return std::fs::read_to_string(path).map_err(|error| {
            format!(
                "cannot read {path}, in which mpiexec says what to do: {error}; is the home directory shared?"
            )
        });
    }
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    wait_for(&mut fds, Some(FIRST_LINE)).map_err(|error| error.to_string())?;
    if fds[0].revents().is_empty() {
        return Err("only `mpiexec` can start an agent: its first line is missing".into());
    }
    let mut line = String::new();
    let mut reader = BufReader::new(stdin.lock()).take(LINE_MAX);
    reader.read_line(&mut line).map_err(|error| format!("cannot read what mpiexec says: {error}"))?;
    Ok(line)
}

/// Returns the number of this host in the job.
fn number(node: &Node) -> Result<u32, String> {
    let (variable, hosts) = match node {
        Node::Number(number) => return Ok(*number),
        Node::Named { variable, hosts } => (variable, hosts),
    };
    let name = std::env::var(variable).ok().filter(|name| !name.is_empty()).unwrap_or_else(host_name);
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let exact = hosts.iter().position(|host| *host == name);
    let found = exact.or_else(|| hosts.iter().position(|host| short(host) == short(&name)));
    found.map(|at| at as u32).ok_or_else(|| {
        format!("this host calls itself {name}, which is none of the job's: {}", hosts.join(", "))
    })
}

/// A source of events.
enum Ready {
    Signals,
    Head,
    Stdin,
    Leader(usize),
    Relay(relay::Ready),
    Crew(crew::Ready),
}

struct Agent {
    // Dropped first, which kills the ranks.
    crew: Crew,
    leaders: Leaders,
    head: Channel,
    relay: Relay,
    signals: Signals,
    /// Whether the end of standard input ends the job.
    watches: bool,
}

impl Agent {
    /// Waits for events and handles them. False: the job is over.
    fn turn(&mut self) -> Result<bool, LaunchError> {
        for ready in self.wait()? {
            match ready {
                Ready::Signals => self.signalled(),
                Ready::Head => self.head.read(),
                // Only the end of input matters, since nothing is written there any more.
                Ready::Stdin if ended(rustix::stdio::stdin()) => return Ok(false),
                Ready::Stdin => {}
                Ready::Leader(number) => {
                    for line in self.leaders.listen(number) {
                        self.head.send(&Up::Note(line));
                    }
                }
                Ready::Relay(ready) => {
                    for message in self.relay.handle(ready, &mut self.head) {
                        self.handle(message);
                    }
                }
                Ready::Crew(ready) => self.crew.handle(ready, &mut self.head),
            }
        }
        self.head.write();
        while let Some(message) = self.head.take() {
            if !self.handle(message) {
                return Ok(false);
            }
        }
        Ok(self.head.is_open())
    }

    fn wait(&mut self) -> Result<Vec<Ready>, LaunchError> {
        let due = self.relay.overdue(&mut self.head);
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        let mut all = vec![
            (PollFd::new(&self.signals, PollFlags::IN), Ready::Signals),
            (PollFd::new(&self.head, self.head.wants()), Ready::Head),
        ];
        if self.watches {
            all.push((PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN), Ready::Stdin));
        }
        for (number, fd) in self.leaders.outputs() {
            all.push((PollFd::from_borrowed_fd(fd, PollFlags::IN), Ready::Leader(number)));
        }
        all.extend(self.relay.interests().into_iter().map(|(fd, ready)| (fd, Ready::Relay(ready))));
        all.extend(self.crew.interests().into_iter().map(|(fd, ready)| (fd, Ready::Crew(ready))));
        let (mut fds, what): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        wait_for(&mut fds, timeout)?;
        let ready = fds.iter().zip(what).filter(|(fd, _)| !fd.revents().is_empty());
        Ok(ready.map(|(_, what)| what).collect())
    }

    fn signalled(&mut self) {
        for request in self.signals.take() {
            match request {
                Request::Reap => {
                    self.crew.reap(&mut self.head);
                    for gone in self.leaders.reap() {
                        self.head.send(&Up::Below { node: gone.node.unwrap_or(0), why: gone.why });
                    }
                }
                // A scheduler ends the job here; the head must know that this was intended.
                Request::End(signal) => self.head.send(&Up::Interrupted(signal)),
                // Keys at the head's terminal arrive from the head.
                Request::Stop => {}
                Request::Forward(signal) => self.crew.signal(signal),
            }
        }
    }

    /// Handles a message of the head, which may have come through another agent. False: the job is over.
    fn handle(&mut self, message: Down) -> bool {
        if matches!(&message, Down::Job(_, JobDown::Release(release)) if release.is_for_all) {
            self.relay.pass_on(&message, &mut self.head);
        }
        match message {
            Down::Bye => return false,
            Down::Job(job, message) => self.crew.handle_job(job, message, &mut self.head),
            Down::Signal(signal) => self.crew.signal(signal),
            Down::Input(bytes) => self.crew.feed(bytes, &mut self.head),
            Down::InputEnd => self.crew.end_input(),
            Down::Deaf(which) => self.crew.close_output(which),
            Down::Taken(count) => self.crew.taken(count),
            Down::Listen(listen) => self.relay.listen(listen, &mut self.head),
            Down::Parent(addresses) => self.relay.join(addresses),
            // A head does not send a second proof.
            Down::Proof { .. } => {}
        }
        true
    }
}

fn ended(input: impl AsFd) -> bool {
    matches!(rustix::io::read(input, &mut [0; 512]), Ok(0) | Err(rustix::io::Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_finds_its_number_by_its_name() {
        let named = |hosts: &[&str]| Node::Named {
            variable: String::new(),
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        };
        let own = host_name();
        assert_eq!(number(&Node::Number(7)), Ok(7));
        assert_eq!(number(&named(&["elsewhere", &own])), Ok(1));
        let full = format!("{}.example.org", own.split('.').next().unwrap_or_default());
        assert_eq!(number(&named(&[&full])), Ok(0));
        assert!(number(&named(&["elsewhere"])).expect_err("it is another").contains("none of the job's"));
    }
}
