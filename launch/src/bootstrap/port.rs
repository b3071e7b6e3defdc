//! PMI-1 over TCP: `PMI_PORT` and `PMI_ID` instead of a descriptor, as with Hydra's `-pmi-port`.
//!
//! The connection begins with a greeting that contains rank and size; then it is used like a descriptor.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::LaunchError;
use crate::pmi::line::Line;

/// Time limit of connecting and of the greeting.
const LIMIT: Duration = Duration::from_secs(60);

/// Most lines of a greeting: its answer, and the values that it sets.
const LINES_MAX: usize = 16;

/// The activity, for error messages.
const DOING: &str = "said hello over PMI_PORT";

/// A connection after its greeting.
#[derive(Debug)]
pub struct Joined {
    /// The connection.
    pub fd: OwnedFd,
    /// Our rank.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
}

/// Connects to `address` (`HOST:PORT`) as the process with the launcher's identifier `id`.
///
/// # Errors
/// An unreachable address, or an invalid greeting of the launcher.
pub fn join(address: &str, id: u32) -> Result<Joined, LaunchError> {
    let unreachable = LaunchError::system(format!("cannot reach the launcher at PMI_PORT={address}"));
    let mut stream = connect(address).map_err(unreachable)?;
    let talking = || LaunchError::system(format!("talking to the launcher at PMI_PORT={address}"));
    stream.set_read_timeout(Some(LIMIT)).map_err(talking())?;
    stream.set_nodelay(true).map_err(talking())?;
    stream.write_all(format!("cmd=initack pmiid={id}\n").as_bytes()).map_err(talking())?;
    let (mut rank, mut size) = (None, None);
    let mut reader = BufReader::new(&stream);
    for number in 0..LINES_MAX {
        let mut text = String::new();
        if reader.read_line(&mut text).map_err(talking())? == 0 {
            return Err(LaunchError::Closed { doing: DOING.into() });
        }
        let wrong = |why: String| LaunchError::Protocol {
            doing: DOING.into(),
            why,
            line: text.trim_end().chars().take(200).collect(),
        };
        let line = Line::parse(text.trim_end()).map_err(wrong)?;
        match (number, line.command) {
            (0, "initack") if line.get("rc").is_none_or(|rc| rc == "0") => {}
            (1.., "set") => {
                rank = line.get("rank").map(|_| line.number("rank")).transpose().map_err(wrong)?.or(rank);
                size = line.get("size").map(|_| line.number("size")).transpose().map_err(wrong)?.or(size);
                // This is the last line of the greeting; later lines are answers.
                if line.get("debug").is_some() {
                    break;
                }
            }
            _ => return Err(wrong("cmd=initack and cmd=set were expected".into())),
        }
    }
    stream.set_read_timeout(None).map_err(talking())?;
    match (rank, size) {
        (Some(rank), Some(size)) if rank < size => Ok(Joined { fd: stream.into(), rank, size }),
        _ => Err(LaunchError::Protocol {
            doing: DOING.into(),
            why: "it tells no rank, or none below the number of ranks".into(),
            line: format!("rank {rank:?} size {size:?}"),
        }),
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("the name has no address");
    for one in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&one, LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Runs a launcher that expects the greeting of process 3 and sends `answer`.
    fn greeted(answer: &'static str) -> Result<(u32, u32), String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let launcher = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("it comes");
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a line");
            assert_eq!(line, "cmd=initack pmiid=3\n");
            (&stream).write_all(answer.as_bytes()).expect("it is taken");
        });
        let joined =
            join(&address, 3).map(|joined| (joined.rank, joined.size)).map_err(|error| error.to_string());
        launcher.join().expect("no panic");
        joined
    }

    #[test]
    fn the_greeting_tells_rank_and_size() {
        let answer = "cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\n";
        assert_eq!(greeted(answer), Ok((2, 4)));
    }

    #[test]
    fn other_greetings_are_refused() {
        for (answer, words) in [
            ("", "closed its connection"),
            ("cmd=initack rc=1\n", "were expected"),
            ("hello\n", "does not begin with cmd="),
            ("cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=4\ncmd=set debug=0\n", "none below"),
            ("cmd=initack rc=0\ncmd=set size=x\n", "is not a number"),
        ] {
            let why = greeted(answer).expect_err(answer);
            assert!(why.contains(words), "{answer:?}: {why}");
        }
        let why = join("127.0.0.1:1", 0).expect_err("nobody listens").to_string();
        assert!(why.contains("PMI_PORT=127.0.0.1:1"), "{why}");
    }
}
