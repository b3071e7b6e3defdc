//! Traffic between hosts for the tests: the test's own executable, started again in a host with a role.

use nmad_testbed::{Rate, Spec, Testbed};
use rustix::net::sockopt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const ROLE: &str = "TESTBED_ROLE";

/// Whether namespaces are allowed here; if not, says why the test is skipped.
pub fn allowed() -> bool {
    nmad_testbed::available().map_err(|refused| eprintln!("skipped: {refused}")).is_ok()
}

/// A testbed of `hosts` hosts and these rails.
pub fn build(hosts: u32, rails: &[&str]) -> Testbed {
    let rails = rails.iter().map(|rate| rate.parse::<Rate>().unwrap()).collect();
    Testbed::build(&Spec::new(hosts, rails)).unwrap()
}

/// What `command` prints in `host`, without the line's end, and whether it succeeded.
pub fn output(testbed: &Testbed, host: u32, words: &[&str]) -> (bool, String) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    testbed.place(host, &mut command).unwrap();
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Sends `len` bytes from one host to another over `rail`; what the receiver counted, or the error of
/// the sender.
pub fn transfer(testbed: &Testbed, from: u32, to: u32, rail: u32, len: u64) -> Result<u64, String> {
    let address = testbed.host(to).addr(rail);
    let mut receiver = Actor::start(testbed, to, &format!("receive {address}"));
    let port = receiver.word_after("PORT");
    let mut sender = Actor::start(testbed, from, &format!("send {address} {port} {len}"));
    match sender.word_after("SENT").as_str() {
        "all" => Ok(receiver.word_after("RECEIVED").parse().unwrap()),
        error => Err(error.to_owned()),
    }
}

/// Sends a datagram of `len` bytes, uncut, from one host to another over `rail`; how many bytes of it came,
/// or the error of one of them.
pub fn datagram(testbed: &Testbed, from: u32, to: u32, rail: u32, len: usize) -> Result<usize, String> {
    let address = testbed.host(to).addr(rail);
    let mut receiver = Actor::start(testbed, to, &format!("hear {address}"));
    let port = receiver.word_after("PORT");
    let mut sender = Actor::start(testbed, from, &format!("say {address} {port} {len}"));
    match sender.word_after("SAID").as_str() {
        "all" => receiver.word_after("HEARD").parse().map_err(|_| "nothing heard".to_owned()),
        error => Err(error.to_owned()),
    }
}

/// The name of the host that a program in `host` finds itself in by its environment.
pub fn whereabouts(testbed: &Testbed, host: u32) -> String {
    Actor::start(testbed, host, "whereabouts").word_after("HERE")
}

/// A process in a host that plays a role; killed when dropped.
struct Actor {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Actor {
    fn start(testbed: &Testbed, host: u32, role: &str) -> Actor {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", "hosts::actor", "--nocapture"]).env(ROLE, role).stdout(Stdio::piped());
        let mut child = testbed.run(host, command).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Actor { child, lines }
    }

    /// Reads up to the line that begins with `key`. The test harness prints lines of its own.
    fn word_after(&mut self, key: &str) -> String {
        let mut lines = self.lines.by_ref().lines().map(|line| line.unwrap());
        let line = lines.find(|line| line.starts_with(key));
        line.unwrap_or_else(|| panic!("the actor ended before it said {key}"))[key.len()..].trim().to_owned()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays the role that the environment names; none, and it is an empty test. `hosts::actor` calls this.
pub fn act() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<_> = role.split(' ').collect();
    match words[..] {
        ["receive", address] => receive(address.parse().unwrap()),
        ["send", address, port, len] => {
            let sent = send(address.parse().unwrap(), port.parse().unwrap(), len.parse().unwrap());
            println!(
                "\nSENT {}",
                sent.map_or_else(|error| format!("{:?}", error.kind()), |()| "all".to_owned())
            );
        }
        ["hear", address] => hear(address.parse().unwrap()),
        ["say", address, port, len] => {
            let said = say((address.parse().unwrap(), port.parse().unwrap()), len.parse().unwrap());
            println!("\nSAID {}", said.map_or_else(|error| error.to_string(), |()| "all".to_owned()));
        }
        ["whereabouts"] => {
            let inside = Testbed::from_env().unwrap().unwrap();
            println!("\nHERE {}", inside.here().unwrap().name);
        }
        _ => panic!("unknown role {role}"),
    }
}

fn receive(address: Ipv4Addr) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    println!("\nPORT {}", listener.local_addr().unwrap().port());
    let (stream, _) = listener.accept().unwrap();
    let len = std::io::copy(&mut { stream }, &mut std::io::sink()).unwrap();
    println!("\nRECEIVED {len}");
}

fn send(address: Ipv4Addr, port: u16, len: u64) -> std::io::Result<()> {
    let mut stream = TcpStream::connect((address, port))?;
    std::io::copy(&mut std::io::repeat(7).take(len), &mut stream)?;
    stream.flush()
}

fn hear(address: Ipv4Addr) {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    println!("\nPORT {}", socket.local_addr().unwrap().port());
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let heard = socket.recv(&mut vec![0; 1 << 16]);
    println!("\nHEARD {}", heard.map_or_else(|_| "nothing".to_owned(), |len| len.to_string()));
}

fn say(to: (Ipv4Addr, u16), len: usize) -> std::io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    sockopt::set_ip_mtu_discover(&socket, sockopt::Ipv4PathMtuDiscovery::DO)?;
    socket.send_to(&vec![7; len], to).map(drop)
}
