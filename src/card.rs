//! The card of a rank: the addresses of its rails for the other ranks, as one string in the launcher's
//! key-value space.

use crate::cores::{Cores, machine};
use crate::error::SessionError;
use crate::rails::{OpenRail, Reach};
use crate::switches;
use nmad_engine::{Driver, Engine, PeerId, RailId};
use nmad_launch::Bootstrap;
use std::collections::{BTreeMap, BTreeSet};
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
    /// A number for the name of its host's switch, if somebody names it.
    pub(crate) switch: Option<u32>,
}

/// The cards of all ranks as text, one behind the other: in a large job most of a card is of no use to a
/// rank, and the decoded ones would take five times the memory.
#[derive(Debug, Default)]
pub(crate) struct Cards {
    text: String,
    /// Where each card ends.
    ends: Vec<usize>,
    /// The program of each rank.
    pub(crate) programs: Vec<u32>,
    /// Profiles that any rank lacks.
    pub(crate) lacks: BTreeSet<u64>,
    /// Ranks that encrypt all links over interfaces, ascending.
    pub(crate) encrypting: Vec<u32>,
}

impl Cards {
    /// Adds the card of the next rank. Returns false, and adds nothing, if it cannot be decoded.
    fn push(&mut self, text: &str) -> bool {
        let Some(Card { lacks, program, encrypts, .. }) = Card::decode(text) else { return false };
        if self.text.capacity() - self.text.len() < text.len() {
            // Twice the room, as a string would take, is too much for a large job.
            self.text.reserve_exact(self.text.len() / 8 + text.len());
        }
        let rank = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.programs.push(program);
        self.lacks.extend(lacks);
        self.encrypting.extend(encrypts.then_some(rank));
        true
    }

    /// Returns the card of a rank; an empty one for a rank that has none.
    pub(crate) fn get(&self, rank: u32) -> Card {
        let rank = rank as usize;
        let start = rank.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let text = self.ends.get(rank).map_or("", |&end| &self.text[start..end]);
        Card::decode(text).unwrap_or_default()
    }

    /// Returns the cards by rank.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Card> + '_ {
        (0..self.ends.len() as u32).map(|rank| self.get(rank))
    }

    /// Returns the ranks that share the machine of this one, or its node, with their cores.
    pub(crate) fn near(&self, job: &dyn Bootstrap) -> Vec<(u32, Cores)> {
        let (nodes, me) = (job.nodes(), job.rank());
        let own = self.get(me).machine;
        let is_near = |(rank, card): &(u32, Card)| {
            nodes[*rank as usize] == nodes[me as usize] || (card.machine != 0 && card.machine == own)
        };
        (0..).zip(self.iter()).filter(is_near).map(|(rank, card)| (rank, card.cores)).collect()
    }

    /// Returns the nodes in ascending order, each with its switch as its first rank told it; none unless all
    /// are known.
    pub(crate) fn switches(&self, nodes: &[u32]) -> Vec<(u32, u32)> {
        let mut known = BTreeMap::new();
        for (rank, node) in (0..).zip(nodes) {
            if !known.contains_key(node) {
                let Some(switch) = self.get(rank).switch else { return Vec::new() };
                known.insert(*node, switch);
            }
        }
        known.into_iter().collect()
    }
}

impl FromIterator<Card> for Cards {
    fn from_iter<I: IntoIterator<Item = Card>>(cards: I) -> Self {
        let mut all = Cards::default();
        cards.into_iter().for_each(|card| _ = all.push(&card.encode()));
        all
    }
}

/// Keys in place of a rail's number.
const LACKS: &str = "lacks";
const CORES: &str = "cores";
const MACHINE: &str = "machine";
const PROGRAM: &str = "program";
const ENCRYPTS: &str = "encrypts";
const SWITCH: &str = "switch";

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
        let switch = self.switch.map(|switch| format!("{SWITCH}={switch}"));
        rails
            .chain(lacks)
            .chain(cores)
            .chain(machine)
            .chain(program)
            .chain(encrypts)
            .chain(switch)
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
                (SWITCH, switch) => card.switch = Some(switch.parse().ok()?),
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
) -> Result<Cards, SessionError> {
    if job.size() == 1 {
        return Ok([Card { cores: Cores::own(), ..Card::default() }].into_iter().collect());
    }
    let told = opened.iter().map(|rail| (rail.number, rail.driver.address()));
    let rails = told.filter(|(_, address)| !address.is_empty()).collect();
    let (cores, program) = (Cores::own(), job.program().unwrap_or(0));
    let switch = switches::own().map_err(SessionError::Rail)?;
    let card = Card { rails, lacks, cores, machine: machine(), program, encrypts, switch };
    job.put(&format!("card-{}", job.rank()), &card.encode())?;
    job.fence()?;
    let (mut cards, mut missing) = (Cards::default(), None);
    let mut rank = 0;
    job.get_each("card-", &mut |text| {
        if !text.is_some_and(|text| cards.push(&text)) {
            missing = missing.or(Some(rank));
        }
        rank += 1;
    })?;
    if let Some(rank) = missing {
        let text = format!("rank {rank} did not tell its addresses (does it run the same version?)");
        return Err(SessionError::Rail(text));
    }
    Ok(cards)
}

/// Tells a driver the addresses of a peer. Returns whether it reaches one of them.
pub(crate) fn knows<'a>(
    driver: &mut dyn Driver,
    peer: u32,
    addresses: impl Iterator<Item = &'a (u8, String)>,
) -> bool {
    // The driver must get every address, so this must not stop at the first.
    addresses.filter(|(number, address)| driver.know(PeerId(peer), *number, address)).count() > 0
}

/// Tells drivers and engine which ranks each rail reaches. Returns these ranks for each rail.
pub(crate) fn acquaint(
    job: &dyn Bootstrap,
    engine: &mut Engine,
    (drivers, reaches): (&mut [Box<dyn Driver>], &[Reach]),
    cards: &Cards,
) -> Vec<Vec<u32>> {
    let own = cards.get(job.rank());
    let mut all = vec![Vec::new(); drivers.len()];
    for peer in 0..job.size() {
        let card = cards.get(peer);
        // The addresses at which the process may be reached.
        let addresses = match Reach::Node.includes(job, peer) {
            true => card.rails.iter().collect(),
            false => card.apart_from(&own),
        };
        for (place, (driver, reach)) in drivers.iter_mut().zip(reaches).enumerate() {
            if !reach.includes(job, peer) {
                continue;
            }
            if knows(&mut **driver, peer, addresses.iter().copied()) || peer == job.rank() {
                engine.setup().add_link(PeerId(peer), RailId(place as u8));
                all[place].push(peer);
            }
        }
    }
    all
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
        let card =
            Card { rails, lacks, cores: Cores::own(), machine, program: 2, encrypts: true, switch: Some(9) };
        assert_eq!(Card::decode(&card.encode()).as_ref(), Some(&card));
        let all: Cards = [card.clone(), Card::default(), card.clone()].into_iter().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), [card.clone(), Card::default(), card]);
        assert_eq!(all.get(3), Card::default());
        assert_eq!(Card::decode(""), Some(Card::default()));
        assert_eq!(Card::decode("x=1"), None);
        assert_eq!(Card::decode("1"), None);
        assert_eq!(Card::decode("lacks=x"), None);
        assert_eq!(Card::decode("cores=x"), None);
        assert_eq!(Card::decode("machine=x"), None);
        assert_eq!(Card::decode("program=x"), None);
        assert_eq!(Card::decode("encrypts=x"), None);
        assert_eq!(Card::decode("switch=x"), None);
    }

    #[test]
    fn switches_are_known_if_all_nodes_have_told_theirs() {
        let card = |switch| Card { switch, ..Card::default() };
        let all: Cards = [Some(7), Some(7), Some(9), Some(7)].map(card).into_iter().collect();
        assert_eq!(all.switches(&[3, 1, 2, 3]), [(1, 7), (2, 9), (3, 7)]);
        let some: Cards = [Some(7), None].map(card).into_iter().collect();
        assert_eq!(some.switches(&[0, 1]), []);
        assert_eq!(some.switches(&[0, 0]), [(0, 7)]);
    }
}
