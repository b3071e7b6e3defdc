//! Bridges: rails to processes of other jobs. For the drivers a bridge is a job with ranks, a secret and an
//! exchange of addresses; for the engine its rails and peers are additional ones of the node.

use crate::card::{exchange, knows};
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

/// Time limit for the last messages of a closed bridge to leave.
const DRAIN_BOUND: Duration = Duration::from_secs(5);

/// Rails to processes of another job.
#[derive(Debug)]
pub struct Bridge {
    rails: Vec<RailId>,
    /// Peer number of each process of the bridge, by its rank there; known processes keep their numbers.
    pub processes: Vec<u32>,
    /// Peer numbers of processes that were new to the session.
    pub fresh: Vec<u32>,
}

impl Session {
    /// Opens rails to processes of other jobs, all of which call this at the same time. `job` is the common
    /// job of all of them; `known` has the peer numbers of those that this session already reaches, by
    /// their ranks there.
    ///
    /// # Errors
    /// A rail cannot be opened, or the exchange of addresses fails.
    pub fn bridge(&self, job: &mut dyn Bootstrap, known: &[Option<u32>]) -> Result<Bridge, SessionError> {
        let mut taken = self.places.taken();
        let free = (self.places.first as u8..).zip(taken.iter()).filter(|(_, place)| place.is_none());
        let numbers: Vec<u8> = free.map(|(number, _)| number).collect();
        // Rails are not measured here, since the processes already compute.
        let options = Options { sample: Sampling::Off, trace: None, ..self.options.clone() };
        let opened = open_as(&options, job, &Arc::new(AtomicBool::new(true)), &numbers);
        // This comes before the error, since others wait for our addresses.
        let cards = exchange(job, opened.as_deref().unwrap_or_default(), (Vec::new(), false))?;
        let mut opened = opened?;
        let is_known = |rank: usize| known.get(rank).copied().flatten();
        let ranks = 0..job.size() as usize;
        let unknown: Vec<usize> = ranks.clone().filter(|&rank| is_known(rank).is_none()).collect();
        let mut reached = vec![false; job.size() as usize];
        let mut links: Vec<Vec<usize>> = Vec::new();
        for OpenRail { driver, reach, .. } in &mut opened {
            let candidates = unknown.iter().copied().filter(|&rank| reach.includes(job, rank as u32));
            let mut is_reached = |rank: u32| knows(&mut **driver, rank, cards.get(rank).rails.iter());
            let linked: Vec<usize> = candidates.filter(|&rank| is_reached(rank as u32)).collect();
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
        let first = self.node().with(|engine| engine.inspect().next_peer().0);
        let mut fresh = first..;
        let processes: Vec<u32> =
            ranks.map(|rank| is_known(rank).unwrap_or_else(|| fresh.next().unwrap_or(u32::MAX))).collect();
        let fresh: Vec<u32> = unknown.iter().map(|&rank| processes[rank]).collect();
        self.put_in_place(opened, &links, &processes);
        // The lock is held until now, so that no other bridge gets these numbers.
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
                engine.setup().place_rail(*rail, *limits);
                engine.setup().name_rail(*rail, name);
                linked.iter().for_each(|&rank| engine.setup().add_link(peers[rank], *rail));
            }
        });
    }

    /// Closes a bridge: submitted messages leave, and the others receive notice. No request to its
    /// processes may be pending.
    pub fn close_bridge(&self, bridge: &Bridge) {
        let peers = || bridge.fresh.iter().copied().map(PeerId);
        self.node().submit(|engine| peers().for_each(|peer| engine.setup().part(peer)));
        self.node().wait_for(DRAIN_BOUND, |engine| peers().all(|peer| engine.inspect().has_parted(peer)));
        self.node().detach(&bridge.rails, |engine| peers().for_each(|peer| engine.setup().forget(peer)));
        let mut taken = self.places.taken();
        bridge.rails.iter().for_each(|rail| taken[rail.index() - self.places.first] = None);
    }
}
