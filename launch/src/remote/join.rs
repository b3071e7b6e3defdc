//! Connects an agent to its head or to another agent: at all addresses at the same time, since it is unknown
//! which of them is reachable.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::channel::{Channel, SILENCE_OF_HEAD, watch};
use super::message::{Down, Up, packed, unpacked};
use super::proof::{self, Numbers, Side};
use crate::Secret;
use nmad_seal::Keys;
use nmad_seal::exchange::Scalar;

/// Time limit for one address. A firewall may drop packets to it silently.
const LIMIT: Duration = Duration::from_secs(10);

/// Longest greeting in bytes.
const GREETING_MAX: usize = 1024;

/// Connects to the head, or to an agent that passes its messages on, as the agent of host `node`, with a
/// proof of the secret.
///
/// # Errors
/// The reason for each address, as a message for the user.
pub fn join(secret: &[u8; 32], addresses: &[SocketAddr], node: u32) -> Result<Channel, String> {
    let (sender, answers) = channel();
    let mut failures = Vec::new();
    for &address in addresses {
        let (sender, secret) = (sender.clone(), *secret);
        let greet = move || sender.send((address, greet(&secret, address, node).map(Box::new)));
        if let Err(error) = std::thread::Builder::new().spawn(greet) {
            failures.push(format!("{address}: cannot start a thread: {error}; see `ulimit -u`"));
        }
    }
    drop(sender);
    let end = Instant::now() + LIMIT + Duration::from_secs(5);
    loop {
        match answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((address, Ok(greeted))) => {
                let (stream, proof, keys) = *greeted;
                match come_in(stream, proof, &keys) {
                    Ok(channel) => return Ok(channel),
                    Err(error) => failures.push(format!("{address}: {error}")),
                }
            }
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

/// Sorts the addresses of the head: the one that ssh came from is usually reachable.
pub fn candidates(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let port = addresses.first().map_or(0, SocketAddr::port);
    let ssh = std::env::var("SSH_CONNECTION").ok();
    let ip: Option<IpAddr> = ssh.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    let mut all: Vec<SocketAddr> = ip.map(|ip| (ip, port).into()).into_iter().collect();
    all.extend(addresses.iter().filter(|address| Some(address.ip()) != ip));
    all
}

/// Connects, and checks the head's proof; returns the agent's proof and the keys of the connection.
fn greet(secret: &[u8; 32], address: SocketAddr, node: u32) -> std::io::Result<(TcpStream, [u8; 32], Keys)> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    watch(&stream, SILENCE_OF_HEAD)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let random = || Ok::<_, std::io::Error>(Secret::random().map_err(std::io::Error::other)?.bytes());
    let (agent, scalar) = (random()?, Scalar::new(random()?));
    stream.write_all(&packed(&Up::Hello { node, nonce: agent, key: scalar.public() }))?;
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    let stranger = || std::io::Error::other("what listens there is not this job's mpiexec");
    if len > GREETING_MAX {
        return Err(stranger());
    }
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes)?;
    let Some(Down::Proof { nonce, key, proof }) = unpacked(&bytes) else { return Err(stranger()) };
    let numbers = Numbers { agent, head: nonce, keys: [scalar.public(), key], node };
    if !proof::is_proven(secret, Side::Head, &numbers, &proof) {
        return Err(stranger());
    }
    stream.set_read_timeout(None)?;
    let keys = numbers.derive(secret, Side::Agent, &scalar).ok_or_else(stranger)?;
    Ok((stream, proof::prove(secret, Side::Agent, &numbers), keys))
}

/// Only one connection is used, the first that reaches the head.
fn come_in(stream: TcpStream, proof: [u8; 32], keys: &Keys) -> std::io::Result<Channel> {
    let mut channel = Channel::new(stream)?;
    channel.send(&Up::Proof(proof));
    channel.trust(keys, Side::Agent);
    Ok(channel)
}
