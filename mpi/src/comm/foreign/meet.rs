//! Two groups of processes of different jobs become an intercommunicator. Their roots meet at a port and
//! exchange what both groups need; each root spreads it in its own group.

use super::super::create::{LIBRARY, party};
use super::super::inter::led_by;
use super::super::party::{Other, Party};
use super::super::{Communicator, Members, agree};
use super::exchange::Exchange;
use super::{IDENTITY, Identity, close, decode_members, encode_members, learn, process};
use crate::error::{Class, Error, Result};
use crate::shown;
use crate::task::block_on;
use crate::world::{World, from_session, world};
use newmadeleine::launch::port::{Meeting, digest};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes by which a node is known.
const NODE: usize = 16;
/// Bytes of what a group tells of a process: its identity and its node.
const MEMBER: usize = IDENTITY + NODE;
/// Tags of agreements of two groups that have just met.
const MET: u64 = 1 << 63 | 1 << 60;

/// One of both groups, the root first.
struct Side {
    /// The rank of the root in its communicator.
    root: i32,
    members: Vec<(Identity, [u8; NODE])>,
}

impl Side {
    fn encode(&self) -> Vec<u8> {
        let member = |(identity, node): &(Identity, [u8; NODE])| [&identity.to_bytes()[..], node].concat();
        let root = self.root.to_le_bytes();
        root.into_iter().chain(self.members.iter().flat_map(member)).collect()
    }

    fn decode(bytes: &[u8]) -> Option<Side> {
        let (root, members) = bytes.split_first_chunk::<4>()?;
        let member = |bytes: &[u8; MEMBER]| {
            let (identity, node) = bytes.split_first_chunk::<IDENTITY>().expect("the length fits");
            (Identity::from_bytes(identity), node.try_into().expect("the length fits"))
        };
        let members: Vec<_> = members.as_chunks::<MEMBER>().0.iter().map(member).collect();
        let root = i32::from_le_bytes(*root);
        (0..members.len() as i32).contains(&root).then_some(Side { root, members })
    }
}

/// What the root knows when it has met the other one.
struct Met {
    is_first: bool,
    secret: [u8; 32],
    theirs: Side,
}

/// An intercommunicator of the processes of `old` and those that the root, rank `root`, meets.
///
/// # Errors
/// The roots do not meet, some process reaches not all others, or a process is in both groups.
pub(crate) fn meet(
    old: &Communicator,
    root: i32,
    arrive: impl FnOnce() -> Result<Meeting>,
) -> Result<Communicator> {
    let world = world()?;
    check(old, root)?;
    let party =
        Party { context: old.collective(), tag: party(old).tag, ..led_by(root, old.local(), old.rank()) };
    let nodes = block_on(party.gather(own_node().to_vec()))?;
    let ours = Side { root, members: members(world, &party, &nodes) };
    let (met, mut meeting) = tell(&party, &ours, arrive)?;
    let mut exchange = exchange(&party, &ours, &met, meeting.as_mut());
    let identities: Vec<Identity> = sides(&ours, &met).iter().map(|(identity, _)| *identity).collect();
    let reached = reach(world, &mut exchange, &identities);
    // Either all go on, or none does.
    let words = exchange.both(vec![u8::from(reached.is_err())]).map_err(no_port)?;
    let reached = reached?;
    if words.contains(&1) {
        if reached {
            let members = Members::new(known_of(world, &met.theirs));
            close(world, super::bridges_to(&[&members]));
        }
        return Err(Class::PORT.error("another process does not reach all processes of the other group"));
    }
    connect(world, old, party, &met)
}

fn check(old: &Communicator, root: i32) -> Result<()> {
    if old.remote().is_some() {
        return Err(Class::COMM.error("the communicator is an intercommunicator"));
    }
    let last = old.local().len() - 1;
    let wrong = || Class::ROOT.error(format!("root {} is not a rank (0 to {last})", shown::rank(root)));
    old.local().world(root).map(drop).ok_or_else(wrong)
}

pub(super) fn no_port(why: newmadeleine::launch::LaunchError) -> Error {
    Class::PORT.error(why.to_string())
}

/// Equal for processes that share memory and the names of sockets: the kernel and its network say it.
fn own_node() -> [u8; NODE] {
    let network = std::fs::read_link("/proc/self/ns/net");
    match (newmadeleine::kernel(), network) {
        (Some(boot), Ok(network)) => digest(format!("{boot} {}", network.display()).as_bytes()),
        // A node of its own, which is always right.
        _ => digest(format!("{} {:?}", std::process::id(), std::time::Instant::now()).as_bytes()),
    }
}

fn members(world: &World, party: &Party, nodes: &[u8]) -> Vec<(Identity, [u8; NODE])> {
    // Gathered in the order of the party.
    let identities = encode_members(world, &party.members);
    let identities = identities.as_chunks::<IDENTITY>().0.iter().map(Identity::from_bytes);
    identities.zip(nodes.as_chunks::<NODE>().0.iter().copied()).collect()
}

/// The root meets the other one, and tells the others what came of it.
fn tell(
    party: &Party,
    ours: &Side,
    arrive: impl FnOnce() -> Result<Meeting>,
) -> Result<(Met, Option<Meeting>)> {
    let mut meeting = None;
    let word = (party.rank == 0).then(|| match swap(ours, arrive) {
        Err(why) => [&[0][..], &why.class().0.to_le_bytes(), why.text().as_bytes()].concat(),
        Ok((found, theirs)) => {
            let word = [&[1, u8::from(found.is_first())][..], &found.secret(), &theirs].concat();
            meeting = Some(found);
            word
        }
    });
    let word = block_on(party.spread(word))?;
    let strange =
        || Class::PORT.error("the root of the other group is no process of NewMadeleine of this version");
    match word.split_first() {
        Some((1, rest)) => {
            let (is_first, rest) = rest.split_first().ok_or_else(strange)?;
            let (secret, theirs) = rest.split_first_chunk::<32>().ok_or_else(strange)?;
            let theirs = Side::decode(theirs).ok_or_else(strange)?;
            Ok((Met { is_first: *is_first == 1, secret: *secret, theirs }, meeting))
        }
        Some((_, rest)) => {
            let (class, text) = rest.split_first_chunk::<4>().ok_or_else(strange)?;
            Err(Class(i32::from_le_bytes(*class)).error(String::from_utf8_lossy(text)))
        }
        None => Err(strange()),
    }
}

fn swap(ours: &Side, arrive: impl FnOnce() -> Result<Meeting>) -> Result<(Meeting, Vec<u8>)> {
    let mut meeting = arrive()?;
    let theirs = meeting.swap(&ours.encode()).map_err(no_port)?;
    Ok((meeting, theirs))
}

/// Both groups, the first one first.
fn sides<'a>(ours: &'a Side, met: &'a Met) -> Vec<&'a (Identity, [u8; NODE])> {
    let (first, second) = if met.is_first { (ours, &met.theirs) } else { (&met.theirs, ours) };
    first.members.iter().chain(&second.members).collect()
}

fn exchange<'a>(party: &'a Party, ours: &Side, met: &Met, meeting: Option<&'a mut Meeting>) -> Exchange<'a> {
    let mut numbers = BTreeMap::new();
    let node = |(_, node): &(Identity, [u8; NODE])| {
        let next = numbers.len() as u32;
        *numbers.entry(*node).or_insert(next)
    };
    let nodes = sides(ours, met).into_iter().map(node).collect();
    let before = if met.is_first { 0 } else { met.theirs.members.len() as u32 };
    Exchange {
        rank: before + party.rank as u32,
        nodes,
        secret: met.secret,
        name: format!("bridge-{:x}", u128::from_le_bytes(digest(&met.secret))),
        party,
        meeting,
        put: String::new(),
        values: BTreeMap::new(),
    }
}

/// Opens rails to those that are not reached yet, if any process of both groups needs some; whether it did.
fn reach(world: &World, exchange: &mut Exchange<'_>, identities: &[Identity]) -> Result<bool> {
    let known: Vec<Option<u32>> = identities.iter().map(|&identity| process(world, identity)).collect();
    let needs = exchange.both(vec![u8::from(known.contains(&None))]).map_err(no_port)?;
    if !needs.contains(&1) {
        return Ok(false);
    }
    let bridge = world.session().bridge(exchange, &known).map_err(from_session)?;
    learn(bridge, identities);
    Ok(true)
}

fn known_of(world: &World, side: &Side) -> Vec<u32> {
    side.members.iter().filter_map(|(identity, _)| process(world, *identity)).collect()
}

/// The processes reach each other: they agree upon a context as two groups of one job do.
fn connect(world: &World, old: &Communicator, party: Party, met: &Met) -> Result<Communicator> {
    let theirs = &met.theirs;
    let len = theirs.members.len();
    // From the order of the party to that of ranks.
    let place = |rank: usize| (rank + len - theirs.root as usize) % len;
    let identities: Vec<u8> = (0..len).flat_map(|rank| theirs.members[place(rank)].0.to_bytes()).collect();
    let remote = decode_members(world, &identities)?;
    if let Some(process) = old.local().processes().find(|&process| remote.rank_of(process).is_some()) {
        return Err(Class::COMM.error(format!("process {process} is in both groups: they must be disjoint")));
    }
    let tag = MET | u64::from_le_bytes(met.secret[..8].try_into().expect("eight bytes")) >> 8;
    let leader =
        remote.world(theirs.root).ok_or_else(|| Class::INTERN.error("the other group has no root"))?;
    let other = Some(Other { process: leader, context: LIBRARY, tag });
    let party = Party { other, ..party };
    let number = block_on(agree::number(&party))?;
    let new = Communicator::new(number, old.local().clone(), Some(Arc::new(remote)), world.session().rank());
    new.set_errhandler(old.errhandler());
    Ok(new)
}
