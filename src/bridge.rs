//! Bridges: rails to processes of other jobs. To the drivers a bridge is a job of its own, with ranks, a
//! secret and an exchange of addresses; to the engine its rails and peers are further ones of the same node.

use crate::card::exchange;
use crate::error::SessionError;
use crate::options::{Options, Sampling};
use crate::rails::{OpenRail, open_as};
use crate::session::Session;
use nmad_drivers::around::renumber::Renumbered;
use nmad_engine::{Driver, PeerId, RailId};
use nmad_launch::Bootstrap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a bridge that is closed waits for its last messages to leave.
const DRAIN_BOUND: Duration = Duration::from_secs(5);

/// Rails to processes of another job.
#[derive(Debug)]
pub struct Bridge {
    rails: Vec<RailId>,
    /// The number of each process of the bridge, by its rank there; those that the session knew before have
    /// the number that they had.
    pub processes: Vec<u32>,
    /// Those that the session did not know.
    pub fresh: Vec<u32>,
}

impl Session {
    /// Opens rails to processes of other jobs, all of which call this at once. `job` is the job that all of
    /// them have together; `known` has the numbers of those that this session reaches already, by their
    /// ranks there.
    ///
    /// # Errors
    /// A rail cannot be opened, or the exchange of addresses fails.
    pub fn bridge(&self, job: &mut dyn Bootstrap, known: &[Option<u32>]) -> Result<Bridge, SessionError> {
        let mut taken = self.places.taken();
        let free = (self.places.first as u8..).zip(taken.iter()).filter(|(_, place)| place.is_none());
        let numbers: Vec<u8> = free.map(|(number, _)| number).collect();
        // Nobody measures here: the processes compute already.
        let options = Options { sample: Sampling::Off, trace: None, ..self.options.clone() };
        let opened = open_as(&options, job, &Arc::new(AtomicBool::new(true)), &numbers);
        // Others wait for our addresses, also if there are none.
        let cards = exchange(job, opened.as_deref().unwrap_or_default(), Vec::new())?;
        let mut opened = opened?;
        let is_known = |rank: usize| known.get(rank).copied().flatten();
        let ranks = 0..job.size() as usize;
        let unknown: Vec<usize> = ranks.clone().filter(|&rank| is_known(rank).is_none()).collect();
        let mut reached = vec![false; job.size() as usize];
        let mut links: Vec<Vec<usize>> = Vec::new();
        for OpenRail { driver, reach, .. } in &mut opened {
            let candidates = unknown.iter().copied().filter(|&rank| reach.includes(job, rank as u32));
            let knows = |rank: &usize| {
                let told = cards[*rank].rails.iter();
                // Each driver must learn every address, so no short cut.
                told.filter(|(number, address)| driver.know(PeerId(*rank as u32), *number, address)).count()
                    > 0
            };
            let linked: Vec<usize> = candidates.filter(knows).collect();
            linked.iter().for_each(|&rank| reached[rank] = true);
            links.push(linked);
        }
        if let Some(&rank) = unknown.iter().find(|&&rank| !reached[rank]) {
            return Err(SessionError::Rail(format!(
                "no rail of this process reaches process {rank} of the other job; choose interfaces with \
                 NMAD_RAILS"
            )));
        }
        let numbers: Vec<RailId> = opened.iter().map(|rail| RailId(rail.number)).collect();
        for (number, linked) in numbers.iter().zip(&links) {
            taken[number.index() - self.places.first] = Some(linked.len() as u32);
        }
        let first = self.node().with(|engine| engine.next_peer().0);
        let mut fresh = first..;
        let processes: Vec<u32> =
            ranks.map(|rank| is_known(rank).unwrap_or_else(|| fresh.next().unwrap_or(u32::MAX))).collect();
        let fresh: Vec<u32> = unknown.iter().map(|&rank| processes[rank]).collect();
        self.put_in_place(opened, &links, &processes);
        // Until now, so that no other bridge gets these numbers.
        drop(taken);
        Ok(Bridge { rails: numbers, processes, fresh })
    }

    fn put_in_place(&self, opened: Vec<OpenRail>, links: &[Vec<usize>], processes: &[u32]) {
        let peers: Vec<PeerId> = processes.iter().copied().map(PeerId).collect();
        let mut limits = Vec::new();
        let mut rails: Vec<(RailId, Box<dyn Driver>)> = Vec::new();
        for OpenRail { driver, number, .. } in opened {
            limits.push((RailId(number), driver.limits(), driver.name().to_string()));
            rails.push((RailId(number), Box::new(Renumbered::new(driver, peers.clone()))));
        }
        self.node().attach(rails, |engine| {
            for ((rail, limits, name), linked) in limits.iter().zip(links) {
                engine.place_rail(*rail, *limits);
                engine.name_rail(*rail, name);
                linked.iter().for_each(|&rank| engine.add_link(peers[rank], *rail));
            }
        });
    }

    /// Closes a bridge: submitted messages leave, and the others receive notice. Nothing may wait for its
    /// processes.
    pub fn close_bridge(&self, bridge: &Bridge) {
        let peers = || bridge.fresh.iter().copied().map(PeerId);
        self.node().submit(|engine| peers().for_each(|peer| engine.part(peer)));
        self.node().wait_for(DRAIN_BOUND, |engine| peers().all(|peer| engine.has_parted(peer)));
        self.node().detach(&bridge.rails, |engine| peers().for_each(|peer| engine.forget(peer)));
        let mut taken = self.places.taken();
        bridge.rails.iter().for_each(|rail| taken[rail.index() - self.places.first] = None);
    }
}
