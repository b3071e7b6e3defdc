//! The session: one process of a job, its rails, and its connection to the other processes.

use crate::Source;
use crate::card::{Cards, acquaint, exchange};
use crate::cores;
use crate::error::SessionError;
use crate::info::{Message, RailInfo};
use crate::lines;
use crate::notices::tell;
use crate::options::{Explain, Options, Sampling};
use crate::places::Places;
use crate::rails::{self, OpenRail, Reach};
use crate::receipts;
use crate::sampling::{self, ProfileInfo, RailToSample, Stock};
use crate::strategies;
use crate::trace::{FileAccess, Trace};
use nmad_drivers::around::trace::TraceHandle;
use nmad_drivers::interpreted;
use nmad_engine::{
    Accuracy, Driver, Engine, Error, Feed, InForce, PeerId, RailId, Receipt, Statistics, StrategyId, Taught,
};
use nmad_launch::{Bootstrap, bootstrap};
use nmad_progress::{Helped, Node, Outcome, Progress, Sharing};
use nmad_seal::Policy;
use nmad_words::setting::misspelt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// One process of a job. Any number of threads may use it at once.
pub struct Session {
    node: Node,
    rank: u32,
    size: u32,
    nodes: Vec<u32>,
    program: Option<u32>,
    programs: Vec<u32>,
    pub(crate) cores: usize,
    pub(crate) nodes_of_machine: usize,
    pub(crate) caches: Vec<(u32, u32)>,
    pub(crate) switches: Vec<(u32, u32)>,
    pub(crate) across_ns: u64,
    /// Taken when the session closes.
    pub(crate) job: Mutex<Option<Box<dyn Bootstrap>>>,
    rails: Vec<Rail>,
    profiles: Vec<ProfileInfo>,
    /// The record of its calls and messages, if one was asked for.
    pub(crate) trace: Option<Trace>,
    receipts: receipts::Kept,
    pub(crate) options: Options,
    pub(crate) places: Places,
}

/// The session's record of a rail.
struct Rail {
    /// How many ranks it reaches.
    peers: u32,
    trace: Option<TraceHandle>,
}

impl Session {
    /// Joins the job in which this process was started (a job of one process without a launcher), with the
    /// settings of the configuration file and the environment. Warnings go to the logger of the program
    /// (crate `log`) if it has one by now, else to standard error; a logger that is set later gets none.
    ///
    /// If a setting is wrong, the launcher ends the job, since the other ranks would wait for this one.
    ///
    /// # Errors
    /// The job cannot be joined, a setting is wrong, or a rail cannot be opened.
    pub fn open() -> Result<Session, SessionError> {
        let opened = Options::load().and_then(|options| Session::open_with(&options));
        opened.inspect_err(SessionError::end_job)
    }

    /// Joins the job with these settings.
    ///
    /// # Errors
    /// Errors of [`Session::open`].
    pub fn open_with(options: &Options) -> Result<Session, SessionError> {
        lines::show(options.log.unwrap_or(lines::DEFAULT));
        // Report a wrong setting before another rank waits for this one.
        if let Some(problem) = options.problems().into_iter().next() {
            return Err(problem);
        }
        let mut options = options.clone();
        if interpreted::by_valgrind() {
            // Programs under Valgrind run tens of times slower, so measurements would be wrong.
            options.sample = Sampling::Off;
        }
        let options = &options;
        let mut job = bootstrap()?;
        let joined = Session::join(options, job.as_mut());
        let mut session = joined.inspect_err(|error| error.end_joined(job.as_mut()))?;
        session.job = Mutex::new(Some(job));
        Ok(session)
    }

    /// Opens the rails and meets the other ranks; the session gets the connection to the launcher later.
    fn join(options: &Options, job: &mut dyn Bootstrap) -> Result<Session, SessionError> {
        let unknown = |e: nmad_engine::UnknownStrategy| setting("strategy", e.to_string());
        if job.rank() == 0 {
            misspelt().iter().for_each(|line| log::warn!("{line}"));
        }
        // Set when all ranks have exchanged their cores, before it is used.
        let oversubscribed = Arc::new(AtomicBool::new(false));
        let opened = rails::open(options, job, &oversubscribed)?;
        let bandwidths = opened.iter().map(|rail| rail.bandwidth).collect();
        let mut config = options.engine(bandwidths).map_err(|why| setting("strategy", why))?;
        config.me = PeerId(job.rank());
        let engine = Engine::new(config).map_err(unknown)?;
        let mut stock = Stock::look(options, job, &to_sample(options, job, &opened));
        let cards = exchange(job, &opened, (stock.lacks(), options.encrypt == Policy::On))?;
        let opened = (opened, &*oversubscribed);
        let (mut session, peers) = Session::assemble(job, engine, opened, &cards)?;
        session.set_progress(options.progress.clone().unwrap_or_default())?;
        session.options = options.clone();
        session.check_reach()?;
        session.sample(&mut stock, job, (&cards, &peers))?;
        // This follows the measurement of the rails, whose messages are not the user's.
        match &options.explain {
            Explain::Off => {}
            Explain::StandardError => receipts::write(&session.node, (job.job(), session.rank), None)?,
            Explain::File(file) => {
                receipts::write(&session.node, (job.job(), session.rank), Some(file))?;
            }
        }
        if options.observations.is_some() {
            session.node.with(|engine| engine.setup().record_observations(true));
        }
        session.trace = session.begin_trace(options, job.job())?;
        Ok(session)
    }

    /// Makes the session, and lists the ranks that each rail reaches.
    fn assemble(
        job: &dyn Bootstrap,
        mut engine: Engine,
        (opened, oversubscribed): (Vec<OpenRail>, &AtomicBool),
        cards: &Cards,
    ) -> Result<(Session, Vec<Vec<u32>>), SessionError> {
        let near = cards.near(job);
        let cores::Judged { sharing, cores, nodes: nodes_of_machine } = cores::judge(job, &near);
        let mut drivers: Vec<Box<dyn Driver>> = Vec::new();
        oversubscribed.store(matches!(sharing, Sharing::Always(_)), Ordering::Relaxed);
        let (mut reaches, mut traces) = (Vec::new(), Vec::new());
        for OpenRail { driver, reach, wire, trace, .. } in opened {
            let rail = engine.setup().add_rail(driver.limits());
            engine.setup().name_rail(rail, driver.name());
            engine.setup().share_wire(rail, RailId(wire as u8));
            reaches.push(reach);
            traces.push(trace);
            drivers.push(driver);
        }
        let peers = acquaint(job, &mut engine, (&mut drivers, &reaches), cards);
        let rails = traces.into_iter().zip(&peers);
        let rails: Vec<Rail> =
            rails.map(|(trace, peers)| Rail { peers: peers.len() as u32, trace }).collect();
        let no_thread = |source| SessionError::System { what: "start the progress thread", source };
        let node = Node::new(engine, drivers, sharing, tell).map_err(no_thread)?;
        let node = node.taking_turns(nodes_of_machine > 1 && matches!(sharing, Sharing::Always(_)));
        node.share_cores(cores::of_node(job, &near), cores::arrange);
        let (rank, size, nodes) = (job.rank(), job.size(), job.nodes().to_vec());
        let (program, programs) = (job.program(), cards.programs.clone());
        let (caches, switches) = (cores::caches(job, &near), cards.switches(&nodes));
        let (job, profiles, trace) = (Mutex::new(None), Vec::new(), None);
        let (options, places) = (Options::default(), Places::behind(rails.len()));
        let receipts = receipts::Kept::default();
        let session = Session {
            node,
            rank,
            size,
            nodes,
            program,
            programs,
            cores,
            nodes_of_machine,
            caches,
            switches,
            across_ns: 0,
            job,
            rails,
            profiles,
            trace,
            receipts,
            options,
            places,
        };
        Ok((session, peers))
    }

    /// Gives the engine the profiles of its rails, after measuring those that any rank lacks.
    fn sample(
        &mut self,
        stock: &mut Stock,
        job: &mut dyn Bootstrap,
        (cards, reached): (&Cards, &[Vec<u32>]),
    ) -> Result<(), SessionError> {
        let peers: Vec<Vec<u32>> = self.node.with_rails(|rails| {
            let both = rails.iter().zip(reached);
            both.map(|(rail, peers)| sampling::as_expected(&**rail, peers, &cards.encrypting)).collect()
        });
        let peers: Vec<&[u32]> = peers.iter().map(|peers| &peers[..]).collect();
        if !cards.lacks.is_empty() {
            stock.cores = cores::examples(job, &cards.near(job));
            stock.complete(&self.node, job, &cards.lacks, &peers)?;
        }
        stock.apply(&self.node, job, &peers);
        self.node.set_hand_offs(stock.hand_offs_ns());
        if !self.caches.is_empty() {
            self.across_ns = cores::across_ns(&stock.hand_offs_ns());
        }
        self.profiles = stock.list();
        Ok(())
    }

    /// Every rank must be reachable over some rail.
    fn check_reach(&self) -> Result<(), SessionError> {
        let missing = |engine: &Engine| (0..self.size).find(|&rank| !engine.inspect().reaches(PeerId(rank)));
        let Some(rank) = self.node.with(|engine| missing(engine)) else { return Ok(()) };
        Err(SessionError::Rail(format!(
            "no rail of rank {} shares a subnet with one of rank {rank} (rails: {}); \
             choose interfaces with NMAD_RAILS",
            self.rank,
            self.rails().iter().map(|r| format!("{} {}", r.name, r.address)).collect::<Vec<_>>().join(", ")
        )))
    }

    /// Returns the rank of this process.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the number of this process's program on the job's command line, from 0; `None` if the
    /// launcher does not tell.
    pub fn program(&self) -> Option<u32> {
        self.program
    }

    /// Returns the program number of each rank; 0 if the launcher does not tell.
    pub fn programs(&self) -> &[u32] {
        &self.programs
    }

    /// Returns the node of each rank as given by the launcher: ranks with equal numbers share memory.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns the profiles of the rails: an entry for each rail and each distance of its peers.
    pub fn profiles(&self) -> &[ProfileInfo] {
        &self.profiles
    }

    /// Chooses the strategy for one rank, or for all: by its name, or as `FILE.so:NAME` in a plug-in.
    ///
    /// # Errors
    /// There is no such strategy or rank, or the plug-in cannot be loaded.
    pub fn set_strategy(&self, rank: Option<u32>, name: &str) -> Result<(), SessionError> {
        let peer = rank.map(|rank| self.peer(rank)).transpose()?;
        self.load_strategy(name)?;
        self.node
            .with(|engine| engine.setup().set_strategy(peer, name))
            .map_err(|e| setting("strategy", e.to_string()))
    }

    /// Adds a strategy of a plug-in that is chosen for the first time.
    fn load_strategy(&self, name: &str) -> Result<(), SessionError> {
        if self.node.with(|engine| engine.inspect().registry().has(name)) {
            return Ok(());
        }
        // Loading runs code of the plug-in, and so happens without the lock of the engine.
        if let Some(make) = strategies::of_plug_in(name).map_err(|why| setting("strategy", why))? {
            self.node.with(|engine| engine.setup().register(make));
        }
        Ok(())
    }

    /// Returns the strategy of this name, or the one that is `FILE.so:NAME` in a plug-in, for
    /// [`crate::Hints::strategy`] of messages.
    ///
    /// # Errors
    /// There is no such strategy, or the plug-in cannot be loaded.
    pub fn strategy(&self, name: &str) -> Result<StrategyId, SessionError> {
        self.load_strategy(name)?;
        let place = self.node.with(|engine| engine.inspect().registry().place(name));
        place.map_err(|e| setting("strategy", e.to_string()))
    }

    /// Returns the names of all strategies, those of the program last.
    pub fn strategies(&self) -> Vec<String> {
        self.node.with(|engine| engine.inspect().registry().names().map(String::from).collect())
    }

    /// Chooses when rails are fed (P1 section 3.2).
    pub fn set_feed(&self, feed: Feed) {
        self.node.with(|engine| engine.setup().set_feed(feed));
    }

    /// Changes the setting of progress while the program computes.
    ///
    /// # Errors
    /// This process may not run on a core in the setting.
    pub fn set_progress(&self, progress: Progress) -> Result<(), SessionError> {
        self.node.set_progress(progress).map_err(|why| setting("progress", why))
    }

    /// Returns the decisions of the helper thread, and its counters of progress while the program computed.
    pub fn helped(&self) -> Helped {
        self.node.helped()
    }

    /// Returns the rails, in order, with their counters.
    pub fn rails(&self) -> Vec<RailInfo> {
        let told: Vec<_> = self.node.with_rails(|rails| {
            let told = |rail: &dyn Driver| {
                let Statistics { dropped, .. } = rail.statistics();
                (rail.name().to_string(), rail.address(), rail.limits(), (dropped, rail.cipher(None)))
            };
            rails.iter().map(|rail| told(&**rail)).collect()
        });
        let counters = |index: usize| self.node.with(|engine| engine.inspect().counters(RailId(index as u8)));
        let info =
            |(index, (name, address, limits, (dropped, cipher))): (usize, (String, String, _, _))| RailInfo {
                name,
                address,
                limits,
                peers: self.rails.get(index).map_or_else(|| self.places.peers(index), |rail| rail.peers),
                counters: counters(index),
                dropped,
                cipher,
            };
        told.into_iter().enumerate().map(info).collect()
    }

    /// Starts or stops recording a receipt of each sent message: candidates, rails and bytes, predicted and
    /// actual time. This ends the output of `NMAD_EXPLAIN`.
    pub fn record_receipts(&self, on: bool) {
        receipts::keep(&self.node, on.then(|| self.receipts.clone()));
    }

    /// Returns the next receipt of a message whose request has ended; the oldest of several thousand are
    /// dropped.
    pub fn next_receipt(&self) -> Option<Receipt> {
        self.node.tell_receipts();
        self.receipts.next()
    }

    /// Returns the accuracy of the predictions for a rail to a rank; `None` if nothing was observed, or the
    /// rail does not reach the rank.
    pub fn accuracy(&self, rail: u8, rank: u32) -> Option<Accuracy> {
        self.node.with(|engine| engine.inspect().forecast(RailId(rail), PeerId(rank))?.accuracy())
    }

    /// Returns the profile of a rail to a rank as corrected by completed transfers; `None` if they changed
    /// nothing, or the rail does not reach the rank.
    pub fn learnt(&self, rail: u8, rank: u32) -> Option<Taught> {
        self.node.with(|engine| engine.inspect().learnt(RailId(rail), PeerId(rank)))
    }

    /// Returns the present thresholds for messages to a rank, and their origins; `None` if there is no such
    /// rank, or no rail reaches it.
    pub fn in_force(&self, rank: u32) -> Option<InForce> {
        self.node.with(|engine| engine.inspect().in_force(PeerId(rank)))
    }

    /// Returns the node of the session, for bindings and benchmarks.
    #[doc(hidden)]
    pub fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn peer(&self, rank: u32) -> Result<PeerId, SessionError> {
        if rank < self.size {
            Ok(PeerId(rank))
        } else {
            Err(SessionError::NoSuchRank { rank, size: self.size })
        }
    }

    pub(crate) fn check_source(&self, from: Source) -> Result<(), SessionError> {
        match from {
            Source::Rank(rank) => self.peer(rank).map(drop),
            Source::Any => Ok(()),
        }
    }

    /// Converts the result of a request for the user.
    #[inline]
    #[doc(hidden)]
    pub fn outcome(&self, outcome: Outcome) -> Result<Message, SessionError> {
        outcome.map(Message::from).map_err(|error| self.explain(error))
    }

    #[cold]
    fn explain(&self, error: Error) -> SessionError {
        match error {
            Error::Truncated { envelope, capacity } => SessionError::Truncated {
                from: envelope.peer.0,
                tag: envelope.tag.0,
                len: envelope.len,
                capacity,
            },
            Error::PeerLost(peer) => {
                let why = self.node.with(|engine| engine.inspect().failure(peer));
                SessionError::PeerLost {
                    rank: peer.0,
                    why: why.map_or_else(String::new, |why| why.to_string()),
                }
            }
            Error::AccessLost(peer) => {
                SessionError::PeerLost { rank: peer.0, why: "the link was lost in an access".into() }
            }
            Error::Cancelled | Error::Revoked => SessionError::Cancelled,
        }
    }

    fn begin_trace(&self, options: &Options, job: &str) -> Result<Option<Trace>, SessionError> {
        let Some(path) = &options.trace else { return Ok(None) };
        let rails = self.rails.iter().filter_map(|rail| rail.trace.clone()).collect();
        Trace::begin(path, (job, self.rank, self.size), &self.node, rails).map(Some)
    }

    /// Returns the time for [`Session::trace_call`]; `None` if this session writes no trace.
    #[doc(hidden)]
    pub fn trace_now(&self) -> Option<u64> {
        self.trace.as_ref().map(Trace::now)
    }

    /// As [`Session::trace_now`], at the begin of a call of this thread.
    #[doc(hidden)]
    pub fn trace_begins(&self) -> Option<u64> {
        self.trace.as_ref().map(Trace::call_begins)
    }

    /// Records a call of the layer above that began at `began` and ends now; `from` is the rank that it
    /// receives from.
    #[doc(hidden)]
    pub fn trace_call(&self, name: &'static str, began: u64, from: Option<u32>) {
        if let Some(trace) = &self.trace {
            trace.call(name, began, from);
        }
    }

    /// Records an access of a file by the layer above.
    #[doc(hidden)]
    pub fn trace_access(&self, access: FileAccess) {
        if let Some(trace) = &self.trace {
            trace.access(access);
        }
    }

    /// Calls `ask` with the connection to the launcher, for the layer above. `None`: the session is closed.
    #[doc(hidden)]
    pub fn with_job<R>(&self, ask: impl FnOnce(&mut dyn Bootstrap) -> R) -> Option<R> {
        let mut job = self.job.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        job.as_mut().map(|job| ask(job.as_mut()))
    }

    /// Ends the whole job with this exit code; does not return.
    pub fn abort(&self, code: i32, why: &str) -> ! {
        if let Some(job) = self.job.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).as_mut() {
            job.abort(code, why);
        }
        std::process::exit(code)
    }
}

fn setting(setting: &str, why: String) -> SessionError {
    SessionError::Setting { setting: setting.into(), why }
}

/// Returns the rails to other ranks for sampling. The loopback rail comes last and is not measured.
fn to_sample(options: &Options, job: &dyn Bootstrap, opened: &[OpenRail]) -> Vec<RailToSample> {
    let rail = |(number, rail): (usize, &OpenRail)| RailToSample {
        name: rail.driver.name().into(),
        throttle: options.throttle.get(number).copied(),
        encrypts: rail.driver.limits().encrypts,
        candidates: (0..job.size()).filter(|&peer| rail.reach.includes(job, peer)).collect(),
    };
    let others = opened.iter().take_while(|rail| rail.reach != Reach::Myself);
    others.enumerate().map(rail).collect()
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
