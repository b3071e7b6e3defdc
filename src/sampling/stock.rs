//! The profiles that this process has and lacks, and how it gets them.

use super::hardware::{self, Distance, Key};
use super::measure::{self, Task};
use super::plan::{self, Offer, Stage};
use super::report::Report;
use super::{Origin, ProfileInfo, cache, doubt};
use crate::error::SessionError;
use crate::options::{Options, Sampling};
use nmad_engine::profile::hash::fnv1a;
use nmad_engine::{Effort, Pair, PeerId, Profile, Provenance, RailId};
use nmad_launch::Bootstrap;
use nmad_progress::Node;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Total time of all quick measurements of a job, in nanoseconds.
const QUICK_NS: u64 = 800_000_000;
/// When they end in any case: a job is delayed by a second at most. What is not known by then is nominal, and
/// its messages teach it.
const QUICK_MAX: Duration = Duration::from_millis(900);
/// Additional time of a measurement that the user asks for on a very busy machine, until there are enough
/// samples for any profile.
const PATIENCE: Duration = Duration::from_secs(8);

/// A rail before it is used.
pub(crate) struct RailToSample {
    /// Its name, for example `tcp/eth1`.
    pub(crate) name: String,
    /// Rate to which software limits it.
    pub(crate) throttle: Option<u64>,
    /// Whether the policy of this side encrypts its links.
    pub(crate) encrypts: bool,
    /// The ranks for which it is used.
    pub(crate) candidates: Vec<u32>,
}

/// A known or missing profile.
struct Entry {
    key: Key,
    hash: u64,
    known: Option<(Arc<Profile>, Origin)>,
    /// To be measured although it is known.
    stale: bool,
}

/// All profiles of this process.
pub(crate) struct Stock {
    entries: Vec<Entry>,
    /// For each rail its name, and the entry for each distance.
    rails: Vec<(String, [Option<usize>; 2])>,
    mode: Sampling,
    effort: Effort,
    /// The effort is that of [`Effort::QUICK`], but for its budget.
    is_quick: bool,
    /// When the present measurement ends if there are enough samples, and when in any case.
    ends: [Instant; 2],
    pair: Option<(u32, u32)>,
    /// Two cores of this node for each kind of pair, for hand-off measurements.
    pub(crate) cores: Vec<(Pair, [usize; 2])>,
    report: Report,
}

impl Stock {
    /// Looks up the known profiles of these rails.
    pub(crate) fn look(options: &Options, job: &dyn Bootstrap, rails: &[RailToSample]) -> Stock {
        let effort = options.effort.unwrap_or(Effort::QUICK);
        let mut stock = Stock {
            entries: Vec::new(),
            rails: Vec::new(),
            mode: options.sample,
            effort,
            is_quick: effort == Effort::QUICK,
            ends: [Instant::now(); 2],
            pair: options.pair,
            cores: Vec::new(),
            report: Report::new(speaks(job), options.sample == Sampling::Auto),
        };
        let shipped = stock.shipped(options);
        let host = hardware::host();
        for rail in rails {
            let mut places = [None, None];
            for (place, distance) in places.iter_mut().zip(Distance::ALL) {
                if rail.candidates.iter().any(|&peer| self::distance(job, peer) == distance) {
                    let words = hardware::rail(&rail.name, rail.throttle, rail.encrypts);
                    let key = Key { rail: words, distance, host: host.clone() };
                    *place = Some(stock.entry(key, &shipped, options));
                }
            }
            stock.rails.push((rail.name.clone(), places));
        }
        stock
    }

    fn shipped(&self, options: &Options) -> Vec<Profile> {
        let Some(file) = &options.profile else { return Vec::new() };
        cache::shipped(file).unwrap_or_else(|why| {
            self.report.say(&format!("the profiles of NMAD_PROFILE are not used: {why}"));
            Vec::new()
        })
    }

    fn entry(&mut self, key: Key, shipped: &[Profile], options: &Options) -> usize {
        if let Some(place) = self.entries.iter().position(|entry| entry.key == key) {
            return place;
        }
        let known = super::find(&key, shipped, options.profile.as_deref()).unwrap_or_else(|why| {
            let then = if self.mode == Sampling::Off { "" } else { "; it is measured again" };
            self.report.say(&format!("{why}{then}"));
            None
        });
        let is_shipped = matches!(known, Some((_, Origin::Shipped(_))));
        if !shipped.is_empty() && !is_shipped {
            let file = options.profile.as_deref().unwrap_or("".as_ref()).display();
            self.report.say(&format!("NMAD_PROFILE: {file} has no profile of '{}'", key.portable()));
        }
        let known = known.map(|(profile, origin)| (Arc::new(profile), origin));
        let hash = fnv1a(key.to_string().as_bytes());
        let stale = match (self.mode, &known) {
            (Sampling::Force, _) => true,
            (_, Some((profile, Origin::Cache(path)))) => doubt::is_due(profile, path),
            _ => false,
        };
        self.entries.push(Entry { key, hash, known, stale });
        self.entries.len() - 1
    }

    /// Returns the hashes of profiles to be measured.
    pub(crate) fn lacks(&self) -> Vec<u64> {
        if self.mode == Sampling::Off {
            return Vec::new();
        }
        self.entries
            .iter()
            .filter(|entry| entry.known.is_none() || entry.stale)
            .map(|entry| entry.hash)
            .collect()
    }

    /// Measures the profiles that any rank lacks, and receives them. All ranks call this if any of them
    /// lacks one. `peers` are the ranks that each rail reaches.
    ///
    /// # Errors
    /// The launcher or the peer of a measurement is gone.
    pub(crate) fn complete(
        &mut self,
        node: &Node,
        job: &mut dyn Bootstrap,
        lacked: &BTreeSet<u64>,
        peers: &[&[u32]],
    ) -> Result<(), SessionError> {
        let offers = self.offers(job, lacked, peers);
        let stages = plan::agree(job, &offers)?;
        let count = stages.iter().filter(|stage| stage.offer != Offer::Give).count() as u64;
        let is_bounded = self.is_quick && self.mode == Sampling::Auto;
        if self.is_quick {
            self.effort.budget_ns = Effort::QUICK.budget_ns.min(QUICK_NS / count.max(1));
        }
        let (begun, mut measured) = (Instant::now(), 0);
        let mut pair = None;
        for (stage, number) in stages.iter().zip(0..) {
            measured += u32::from(stage.offer != Offer::Give);
            let soft = Duration::from_nanos(self.effort.budget_ns * 3 / 2);
            self.ends = match is_bounded {
                // A rail that is silent or slow leaves the later ones their shares.
                true => [begun + QUICK_MAX * measured / count.max(1) as u32; 2],
                // Who asks for a measurement waits for it.
                false => [Instant::now() + soft, Instant::now() + soft + PATIENCE],
            };
            if let Offer::Measure { peer, .. } = stage.offer
                && pair.replace((stage.rank, peer)).is_some_and(|last| last != (stage.rank, peer))
            {
                job.fence()?;
            }
            self.take_part(node, job, stage, number)?;
        }
        if !stages.is_empty() {
            job.fence()?;
        }
        for stage in &stages {
            self.receive(job, stage)?;
        }
        self.report.end();
        Ok(())
    }

    /// Returns this rank's offers for the missing profiles.
    fn offers(&self, job: &dyn Bootstrap, lacked: &BTreeSet<u64>, peers: &[&[u32]]) -> Vec<(u64, Offer)> {
        let is_ours = |rank: u32| self.pair.is_none_or(|(a, b)| rank == a || rank == b);
        let offer = |(index, entry): (usize, &Entry)| {
            if entry.known.is_some() && !entry.stale {
                return Some((entry.hash, Offer::Give));
            }
            let at = |distance: Distance| Distance::ALL.iter().position(|&other| other == distance);
            let serves =
                |rail: &usize| at(entry.key.distance).and_then(|at| self.rails[*rail].1[at]) == Some(index);
            let measure = |rail: usize| {
                let mut near = peers[rail].iter().filter(|&&peer| distance(job, peer) == entry.key.distance);
                let peer = *near.find(|&&peer| is_ours(peer))?;
                Some((entry.hash, Offer::Measure { rail: rail as u8, peer }))
            };
            let mut rails = (0..self.rails.len()).filter(serves).filter(|_| is_ours(job.rank()));
            rails.find_map(measure)
        };
        let wanted = |entry: &Entry| lacked.contains(&entry.hash);
        self.entries.iter().enumerate().filter(|(_, entry)| wanted(entry)).filter_map(offer).collect()
    }

    fn take_part(
        &mut self,
        node: &Node,
        job: &mut dyn Bootstrap,
        stage: &Stage,
        number: u32,
    ) -> Result<(), SessionError> {
        match stage.offer {
            Offer::Give if stage.rank == job.rank() => {
                let entry = self.entries.iter().find(|entry| entry.hash == stage.hash);
                if let Some((profile, _)) = entry.and_then(|entry| entry.known.as_ref()) {
                    job.put(&key(stage), &profile.print())?;
                }
            }
            Offer::Measure { rail, peer } if stage.rank == job.rank() => {
                if let Some(profile) = self.measure(node, stage.hash, (rail, peer), number)? {
                    job.put(&key(stage), &profile.print())?;
                }
            }
            Offer::Measure { peer, .. } if peer == job.rank() => {
                measure::answer(node, PeerId(stage.rank), number)?
            }
            _ => {}
        }
        Ok(())
    }

    /// Measures a rail; returns its profile.
    fn measure(
        &mut self,
        node: &Node,
        hash: u64,
        (rail, peer): (u8, u32),
        number: u32,
    ) -> Result<Option<Arc<Profile>>, SessionError> {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.hash == hash) else { return Ok(None) };
        let name = &self.rails[usize::from(rail)].0;
        let report = &mut self.report;
        let what = format!("{name} ({})", entry.key.distance.name());
        report.begin(&what);
        let how = if self.effort.rounds > Effort::QUICK.rounds { "full effort" } else { "quick" };
        let provenance = Provenance {
            key: entry.key.to_string(),
            when: super::report::now(),
            place: String::new(),
            how: format!("{name}, {how}"),
            doubt: None,
        };
        let mut task = Task {
            rail: RailId(rail),
            peer: PeerId(peer),
            number,
            effort: self.effort,
            until: self.ends[0],
            latest: self.ends[1],
            limit: super::hardware::limit(&entry.key.rail),
            provenance,
            pairs: &self.cores,
            progress: &mut |part| report.progress(part),
        };
        let found = match measure::send(node, &mut task)? {
            Ok(found) => found,
            Err(why) => {
                report.failed(&format!("{name} could not be measured: {why}"));
                return Ok(None);
            }
        };
        // A user who forces a new measurement does not want earlier ones.
        let earlier = entry.known.take().filter(|_| self.mode == Sampling::Auto);
        let why = found.provenance().doubt.as_ref().map(|doubt| doubt.why.clone());
        // The driver's learnt values are independent of this measurement.
        let learnt = earlier.as_ref().map_or_else(Vec::new, |(profile, _)| profile.learnt().to_vec());
        let better = doubt::better(earlier.as_ref().map(|(profile, _)| &**profile), found);
        let profile = Arc::new(better.with_learnt(learnt));
        if let Some((why, doubt)) = why.zip(profile.provenance().doubt.as_ref()) {
            report.doubtful(format!("{what} was disturbed: {why}; {}", doubt::outlook(doubt)));
        }
        entry.known = Some((profile.clone(), Origin::Measured));
        entry.stale = false;
        self.keep(hash);
        Ok(Some(profile))
    }

    /// Reads the profile that another rank has given or measured.
    fn receive(&mut self, job: &mut dyn Bootstrap, stage: &Stage) -> Result<(), SessionError> {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.hash == stage.hash) else {
            return Ok(());
        };
        if stage.rank == job.rank() || (entry.known.is_some() && !entry.stale) {
            return Ok(());
        }
        let Some(text) = job.get(&key(stage))? else { return Ok(()) };
        // A rank of the same version wrote it; an invalid text still counts as none.
        let Ok(profile) = Profile::parse(&text) else { return Ok(()) };
        entry.known = Some((Arc::new(profile), Origin::Measured));
        entry.stale = false;
        if speaks(job) {
            self.keep(stage.hash);
        }
        Ok(())
    }

    /// Stores a profile for later jobs.
    fn keep(&mut self, hash: u64) {
        let Some(entry) = self.entries.iter().find(|entry| entry.hash == hash) else { return };
        let Some((profile, _)) = &entry.known else { return };
        let remedy = "they are measured again in each job (set XDG_CACHE_HOME)";
        match cache::folder() {
            None => self.report.once(&format!("profiles cannot be kept: there is no home folder; {remedy}")),
            Some(folder) => {
                if let Err(error) = cache::store(&folder, &entry.key, profile) {
                    let folder = folder.display();
                    self.report.once(&format!("profiles cannot be kept in {folder}: {error}; {remedy}"));
                }
            }
        }
    }

    /// Gives the known profiles to the engine, and to the rails the lengths from which they leave data in
    /// place: those of the nearest peers that a rail has a profile for.
    pub(crate) fn apply(&self, node: &Node, job: &dyn Bootstrap, peers: &[&[u32]]) {
        for (number, (_, places)) in self.rails.iter().enumerate() {
            for (place, distance) in places.iter().zip(Distance::ALL) {
                let entry = place.map(|place| &self.entries[place]);
                let Some((profile, _)) = entry.and_then(|entry| entry.known.as_ref()) else { continue };
                let there = peers[number].iter().filter(|&&peer| self::distance(job, peer) == distance);
                node.with(|engine| {
                    there.for_each(|&peer| {
                        engine.setup().set_profile(RailId(number as u8), Some(PeerId(peer)), profile.clone());
                    });
                });
            }
            let known = places.iter().flatten().find_map(|&place| self.entries[place].known.as_ref());
            if let Some(from) = known.and_then(|(profile, _)| profile.in_place()) {
                node.with_rails(|rails| rails[number].leave_in_place(Some(from)));
            }
        }
    }

    /// Returns hand-off times for each kind of pair of cores in nanoseconds, from the first profile with
    /// some.
    pub(crate) fn hand_offs_ns(&self) -> [Option<u64>; Pair::ALL.len()] {
        let mut profiles = self.entries.iter().filter_map(|entry| Some(&entry.known.as_ref()?.0));
        let knows = profiles.find(|profile| profile.least_hand_off_ns().is_some());
        knows.map_or([None; Pair::ALL.len()], |profile| Pair::ALL.map(|pair| profile.hand_off_ns(pair)))
    }

    /// Returns the profiles by rail.
    pub(crate) fn list(&self) -> Vec<ProfileInfo> {
        let mut list = Vec::new();
        for (number, (rail, places)) in self.rails.iter().enumerate() {
            list.extend(places.iter().flatten().map(|&place| ProfileInfo {
                rail: rail.clone(),
                number: number as u8,
                key: self.entries[place].key.clone(),
                known: self.entries[place].known.clone(),
            }));
        }
        list
    }
}

fn key(stage: &Stage) -> String {
    format!("profile-{:016x}", stage.hash)
}

fn distance(job: &dyn Bootstrap, peer: u32) -> Distance {
    let nodes = job.nodes();
    match nodes[peer as usize] == nodes[job.rank() as usize] {
        true => Distance::SameHost,
        false => Distance::OtherHost,
    }
}

/// Returns whether this rank reports and writes files for its host: the first rank there does.
pub(super) fn speaks(job: &dyn Bootstrap) -> bool {
    let nodes = job.nodes();
    nodes.iter().position(|&node| node == nodes[job.rank() as usize]) == Some(job.rank() as usize)
}
