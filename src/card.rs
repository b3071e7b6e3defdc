//! The card of a rank: the addresses of its rails for the other ranks, as one string in the launcher's
//! key-value space.

use crate::cores::{Cores, machine};
use crate::error::SessionError;
use crate::rails::OpenRail;
use nmad_launch::Bootstrap;
use std::net::IpAddr;

/// The addresses of one rank's rails, with their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) rails: Vec<(u8, String)>,
    /// Hashes of the profiles that the rank lacks and wants measured.
    pub(crate) lacks: Vec<u64>,
    /// Cores on which it may run.
    pub(crate) cores: Cores,
    /// Its machine ([`machine`]).
    pub(crate) machine: u64,
    /// Number of its program on the job's command line; 0 if the launcher does not tell.
    pub(crate) program: u32,
    /// It encrypts all links over interfaces (`NMAD_ENCRYPT=on`).
    pub(crate) encrypts: bool,
}

/// Keys in place of a rail's number.
const LACKS: &str = "lacks";
const CORES: &str = "cores";
const MACHINE: &str = "machine";
const PROGRAM: &str = "program";
const ENCRYPTS: &str = "encrypts";

impl Card {
    /// Encodes the card, for example
    /// `0=10.0.0.1/24:4000;1=10.0.1.1/24:4001;lacks=6c62272e07bb0142;cores=3;machine=1d0c;program=1`.
    pub(crate) fn encode(&self) -> String {
        let rails = self.rails.iter().map(|(number, address)| format!("{number}={address}"));
        let lacks = self.lacks.iter().map(|name| format!("{LACKS}={name:x}"));
        let cores = Some(&self.cores).filter(|cores| !cores.is_empty());
        let cores = cores.map(|cores| format!("{CORES}={}", cores.encode()));
        let machine = Some(self.machine).filter(|&machine| machine > 0);
        let machine = machine.map(|machine| format!("{MACHINE}={machine:x}"));
        let program = Some(self.program).filter(|&program| program > 0);
        let program = program.map(|program| format!("{PROGRAM}={program}"));
        let encrypts = self.encrypts.then(|| format!("{ENCRYPTS}=1"));
        rails
            .chain(lacks)
            .chain(cores)
            .chain(machine)
            .chain(program)
            .chain(encrypts)
            .collect::<Vec<_>>()
            .join(";")
    }

    /// Decodes a card; `None` for other text.
    pub(crate) fn decode(text: &str) -> Option<Card> {
        let mut card = Card::default();
        for entry in text.split(';').filter(|entry| !entry.is_empty()) {
            match entry.split_once('=')? {
                (LACKS, name) => card.lacks.push(u64::from_str_radix(name, 16).ok()?),
                (CORES, cores) => card.cores = Cores::decode(cores)?,
                (MACHINE, machine) => card.machine = u64::from_str_radix(machine, 16).ok()?,
                (PROGRAM, program) => card.program = program.parse().ok()?,
                (ENCRYPTS, "1") => card.encrypts = true,
                (number, address) => card.rails.push((number.parse().ok()?, address.to_string())),
            }
        }
        Some(card)
    }
}

impl Card {
    /// Returns the rails at which `own`, the card of this rank, may reach a rank on another node. An
    /// address that both have leads each of them to itself: bridges of containers and virtual machines
    /// (`docker0`) have the same address everywhere. If one of the ranks has no other address, common ones
    /// are kept: the node may be the same without the launcher's knowledge.
    pub(crate) fn apart_from<'a>(&'a self, own: &Card) -> Vec<&'a (u8, String)> {
        let has = |card: &Card, address: &str| card.rails.iter().any(|(_, other)| ip(other) == ip(address));
        let is_shared = |card: &Card, address: &str| ip(address).is_some() && has(card, address);
        let differs =
            |one: &Card, other: &Card| one.rails.iter().any(|(_, a)| ip(a).is_some() && !has(other, a));
        let are_two = differs(self, own) && differs(own, self);
        self.rails.iter().filter(|(_, address)| !(are_two && is_shared(own, address))).collect()
    }
}

/// Returns the IP address in a rail's address, which may begin with the name of its driver:
/// `10.0.0.1/24:4000`, `udp:10.0.0.1/24:4000`.
fn ip(address: &str) -> Option<IpAddr> {
    let (start, _) = address.split_once('/')?;
    start.parse().ok().or_else(|| start.split_once(':')?.1.parse().ok())
}

/// Sends our card and receives those of all others; `encrypts` is its last field.
pub(crate) fn exchange(
    job: &mut dyn Bootstrap,
    opened: &[OpenRail],
    (lacks, encrypts): (Vec<u64>, bool),
) -> Result<Vec<Card>, SessionError> {
    if job.size() == 1 {
        return Ok(vec![Card { cores: Cores::own(), ..Card::default() }]);
    }
    let told = opened.iter().map(|rail| (rail.number, rail.driver.address()));
    let rails = told.filter(|(_, address)| !address.is_empty()).collect();
    let (cores, program) = (Cores::own(), job.program().unwrap_or(0));
    let card = Card { rails, lacks, cores, machine: machine(), program, encrypts };
    job.put(&format!("card-{}", job.rank()), &card.encode())?;
    job.fence()?;
    let missing = |rank: u32| {
        SessionError::Rail(format!("rank {rank} did not tell its addresses (does it run the same version?)"))
    };
    let texts = (0..).zip(job.get_all("card-")?);
    texts.map(|(rank, text)| text.as_deref().and_then(Card::decode).ok_or_else(|| missing(rank))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(addresses: &[&str]) -> Card {
        let rails = (0..).zip(addresses).map(|(number, address)| (number, address.to_string())).collect();
        Card { rails, ..Card::default() }
    }

    #[test]
    fn an_address_that_two_hosts_have_is_not_used_between_them() {
        let left = |own: &[&str], other: &[&str]| -> Vec<u8> {
            card(other).apart_from(&card(own)).into_iter().map(|(number, _)| *number).collect()
        };
        let (docker, docker2) = ("172.17.0.1/16:4000", "172.17.0.1/16:4001");
        let (own, other) = ("10.0.0.1/24:4000", "10.0.0.2/24:4000");
        assert_eq!(left(&[docker, own], &[docker2, other]), [1]);
        assert_eq!(left(&["udp:172.17.0.1/16:7", own], &[docker2, "udp:fd00::2/64:9"]), [1]);
        assert_eq!(left(&["fd00::1/64:1", own], &["fd00::1/64:2", other]), [1]);
        // This may be one host: one rank may have opened a rail that the other has not.
        assert_eq!(left(&[docker, own], &[docker2, "10.0.0.1/24:7"]), [0, 1]);
        assert_eq!(left(&[docker], &[docker2, other]), [0, 1]);
        // Other drivers have addresses of their own.
        assert_eq!(left(&["shm:a", docker, own], &["shm:a", docker2, other]), [0, 2]);
    }

    #[test]
    fn a_card_survives_a_round_trip_and_other_text_is_refused() {
        let rails = vec![(0, "10.0.0.1/24:1".into()), (3, "fd00::1/64:2".into())];
        let (lacks, machine) = (vec![7, u64::MAX], 0x1d0c);
        let card = Card { rails, lacks, cores: Cores::own(), machine, program: 2, encrypts: true };
        assert_eq!(Card::decode(&card.encode()), Some(card));
        assert_eq!(Card::decode(""), Some(Card::default()));
        assert_eq!(Card::decode("x=1"), None);
        assert_eq!(Card::decode("1"), None);
        assert_eq!(Card::decode("lacks=x"), None);
        assert_eq!(Card::decode("cores=x"), None);
        assert_eq!(Card::decode("machine=x"), None);
        assert_eq!(Card::decode("program=x"), None);
        assert_eq!(Card::decode("encrypts=x"), None);
    }
}
