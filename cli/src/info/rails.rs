//! Rails: of a session inside a job, else the interfaces that could become rails.

use newmadeleine::{Network, Options, Session, SessionError, Source, host_name};
use nmad_bench::stats::bytes;
use nmad_bench::table::Table;
use nmad_drivers::interface::interfaces;
use serde::Serialize;

use super::settings::rate;

/// Rank 0 collects host names with this tag.
const TAG: u64 = 1;

/// A rail, or an interface that could become one.
#[derive(Debug, Serialize)]
pub(super) struct Rail {
    pub(super) name: String,
    address: String,
    /// Nominal or configured speed in bytes per second; none: unknown.
    bandwidth: Option<u64>,
    /// Longest packet in bytes; none outside of a job, where nothing is opened.
    packet: Option<usize>,
    /// Pieces of user memory that a packet may leave in place.
    gather: Option<usize>,
    /// Whether packets may be lost on the way.
    lossy: Option<bool>,
    /// The cipher of its latest encrypted link; `None` outside of a job, and if it has had no such link.
    cipher: Option<&'static str>,
    /// Whether the policy of this side encrypts its links.
    encrypts: Option<bool>,
    /// Ranks that can be reached over it.
    peers: Option<u32>,
    /// Why this process cannot open it; none: nothing is known against it.
    hindrance: Option<String>,
    /// A service of the system that it lacks there, and why; none: it lacks nothing.
    lack: Option<String>,
}

/// A rank of the job.
#[derive(Debug, Serialize)]
pub(super) struct Peer {
    rank: u32,
    host: String,
}

/// The interfaces of this machine that are up.
pub(super) fn of_machine(options: &Options) -> Result<Vec<Rail>, SessionError> {
    let system = |source| SessionError::System { what: "list the network interfaces", source };
    let rail = |driver: Network, interface: &nmad_drivers::interface::Interface| Rail {
        name: format!("{}/{}", driver.name(), interface.name),
        address: format!("{}/{}", interface.address, interface.prefix),
        bandwidth: Some(interface.bandwidth).filter(|bandwidth| *bandwidth > 0),
        packet: None,
        gather: None,
        lossy: None,
        cipher: None,
        encrypts: None,
        peers: None,
        hindrance: driver.hindrance(),
        lack: if driver.hindrance().is_none() { driver.lack() } else { None },
    };
    let found = interfaces().map_err(system)?;
    let by_each =
        |driver: &Network| found.iter().map(|interface| rail(*driver, interface)).collect::<Vec<_>>();
    Ok(options.drivers().iter().flat_map(by_each).collect())
}

/// The rails that a session has opened.
pub(super) fn of_session(session: &Session) -> Vec<Rail> {
    let lack = |name: &str| Network::named(name.split('/').next()?).ok()?.lack();
    let rail = |rail: newmadeleine::RailInfo| Rail {
        lack: lack(&rail.name),
        name: rail.name,
        address: rail.address,
        bandwidth: Some(rail.limits.bandwidth).filter(|bandwidth| *bandwidth > 0),
        packet: Some(rail.limits.packet),
        gather: Some(rail.limits.gather),
        lossy: Some(rail.limits.lossy),
        cipher: rail.cipher,
        encrypts: Some(rail.limits.encrypts),
        peers: Some(rail.peers),
        hindrance: None,
    };
    session.rails().into_iter().map(rail).collect()
}

/// At rank 0 all ranks of the job, elsewhere an empty list.
pub(super) fn peers(session: &Session) -> Result<Vec<Peer>, SessionError> {
    let host: String = host_name().chars().take(64).collect();
    if session.rank() > 0 {
        session.send(0, TAG, host.as_bytes())?;
        return Ok(Vec::new());
    }
    let mut peers = vec![Peer { rank: 0, host }];
    let mut buffer = [0; 256];
    for _ in 1..session.size() {
        let message = session.recv(Source::Any, TAG, &mut buffer)?;
        let host = String::from_utf8_lossy(&buffer[..message.len]).into_owned();
        peers.push(Peer { rank: message.from, host });
    }
    peers.sort_by_key(|peer| peer.rank);
    Ok(peers)
}

/// The other ranks end when rank 0 has seen its links to them.
pub(super) fn let_go(session: &Session) -> Result<(), SessionError> {
    if session.rank() > 0 {
        return session.recv(0, TAG, &mut []).map(drop);
    }
    (1..session.size()).try_for_each(|rank| session.send(rank, TAG, &[]))
}

pub(super) fn table(rails: &[Rail]) -> Table {
    let is_open = rails.iter().any(|rail| rail.packet.is_some());
    let title = if is_open { "rails" } else { "interfaces that can become rails" };
    let mut header = vec!["name", "address", "speed"];
    if is_open {
        header.extend(["longest packet", "gather", "loss", "encryption", "ranks"]);
    }
    let is_hindered = rails.iter().any(|rail| rail.hindrance.is_some() || rail.lack.is_some());
    if is_hindered {
        header.push("use by this process");
    }
    let hindrance = header.len() - 1;
    let mut table = Table::new(title, &header).words(if is_hindered { vec![1, hindrance] } else { vec![1] });
    for rail in rails {
        let address = if rail.address.is_empty() { "-".to_string() } else { rail.address.clone() };
        let mut cells = vec![rail.name.clone(), address, rail.bandwidth.map_or("unknown".into(), rate)];
        cells.extend(rail.packet.map(|len| bytes(len as u64)));
        cells.extend(rail.gather.map(|count| count.to_string()));
        cells.extend(rail.lossy.map(|lossy| if lossy { "possible" } else { "none" }.to_string()));
        let encryption = |encrypts| rail.cipher.unwrap_or(if encrypts { "on" } else { "none" });
        cells.extend(rail.encrypts.map(|encrypts| encryption(encrypts).to_string()));
        cells.extend(rail.peers.map(|count| count.to_string()));
        if is_hindered {
            cells.push(match (&rail.hindrance, &rail.lack) {
                (Some(why), _) => format!("no: {why}"),
                (None, Some(lack)) => format!("possible, but {lack}"),
                (None, None) => "possible".into(),
            });
        }
        table.row(cells);
    }
    table
}

pub(super) fn peer_table(peers: &[Peer]) -> Table {
    let mut table = Table::new("ranks", &["rank", "host"]).words([1]);
    for Peer { rank, host } in peers {
        table.row([rank.to_string(), host.clone()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_may_not_use_is_marked_and_says_why() {
        let rail = |name: &str, hindrance: Option<&str>| Rail {
            name: name.into(),
            address: "10.0.0.1/24".into(),
            bandwidth: None,
            packet: None,
            gather: None,
            lossy: None,
            cipher: None,
            encrypts: None,
            peers: None,
            hindrance: hindrance.map(String::from),
            lack: None,
        };
        let usable = table(&[rail("tcp/eth0", None)]).to_string();
        assert!(!usable.contains("use by this process"), "{usable}");
        let both = table(&[rail("tcp/eth0", None), rail("packet/eth0", Some("needs a right"))]).to_string();
        assert!(both.contains("possible") && both.contains("no: needs a right"), "{both}");
        let slower = Rail { lack: Some("slower: why".into()), ..rail("verbs/eth0", None) };
        let slower = table(&[slower]).to_string();
        assert!(slower.contains("possible, but slower: why"), "{slower}");
    }
}
