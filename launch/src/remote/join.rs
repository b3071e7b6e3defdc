//! An agent's way to its head: all addresses at once, since nobody knows which of them leads there from here.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::channel::{Channel, SILENCE_OF_HEAD, watch};
use super::message::{Down, Up, packed, unpacked};
use super::proof::{self, Numbers, Side};
use crate::Secret;

/// How long one address may take. Packets to a host behind a firewall vanish.
const LIMIT: Duration = Duration::from_secs(10);

/// A greeting is no longer than this.
const GREETING_MAX: usize = 1024;

/// Connects to the head as the agent of host `node`, and proves it.
///
/// # Errors
/// Why no address led to the head, in words for the user.
pub fn join(secret: &[u8; 32], addresses: &[SocketAddr], node: u32) -> Result<Channel, String> {
    let candidates = candidates(addresses);
    let (sender, answers) = channel();
    for &address in &candidates {
        let (sender, secret) = (sender.clone(), *secret);
        std::thread::spawn(move || sender.send((address, greet(&secret, address, node))));
    }
    drop(sender);
    let end = Instant::now() + LIMIT + Duration::from_secs(5);
    let mut failures = Vec::new();
    loop {
        match answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((address, Ok((stream, proof)))) => match come_in(stream, proof) {
                Ok(channel) => return Ok(channel),
                Err(error) => failures.push(format!("{address}: {error}")),
            },
            Ok((address, Err(error))) => failures.push(format!("{address}: {error}")),
            Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {
                return Err(format!(
                    "this host cannot reach mpiexec ({}); does a firewall or a missing route prevent it?",
                    failures.join("; ")
                ));
            }
        }
    }
}

/// The address that ssh came from leads back most of the time.
fn candidates(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let port = addresses.first().map_or(0, SocketAddr::port);
    let ssh = std::env::var("SSH_CONNECTION").ok();
    let ip: Option<IpAddr> = ssh.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    let mut all: Vec<SocketAddr> = ip.map(|ip| (ip, port).into()).into_iter().collect();
    all.extend(addresses.iter().filter(|address| Some(address.ip()) != ip));
    all
}

/// Connects, and makes sure that it is our head; gives the proof that it wants of us.
fn greet(secret: &[u8; 32], address: SocketAddr, node: u32) -> std::io::Result<(TcpStream, [u8; 32])> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    watch(&stream, SILENCE_OF_HEAD)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let agent = Secret::random().map_err(std::io::Error::other)?.bytes();
    stream.write_all(&packed(&Up::Hello { node, nonce: agent }))?;
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    let stranger = || std::io::Error::other("what listens there is not this job's mpiexec");
    if len > GREETING_MAX {
        return Err(stranger());
    }
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes)?;
    let Some(Down::Proof { nonce, proof }) = unpacked(&bytes) else { return Err(stranger()) };
    let numbers = Numbers { agent, head: nonce, node };
    if !proof::is_proven(secret, Side::Head, &numbers, &proof) {
        return Err(stranger());
    }
    stream.set_read_timeout(None)?;
    Ok((stream, proof::prove(secret, Side::Agent, &numbers)))
}

/// Of several ways that lead to the head, the first is taken.
fn come_in(stream: TcpStream, proof: [u8; 32]) -> std::io::Result<Channel> {
    let mut channel = Channel::new(stream)?;
    channel.trust();
    channel.send(&Up::Proof(proof));
    Ok(channel)
}
