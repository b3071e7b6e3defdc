//! A trace as an archive of OTF2, for Vampir and other tools: a rank is a process, its threads that called
//! MPI are locations, calls are regions, messages are sends and receives of one communicator, and of each
//! rail there is a counter of the bytes that it carries.

mod library;

use std::collections::BTreeMap;
use std::path::Path;

use super::bars::{Bar, bars};
use super::links::Links;
use super::messages::Message;
use super::records::{Records, span_ns};
use super::states::threads;
use library::{Archive, Definitions, What};

/// The attribute of a send that says which protocol the message took.
const PROTOCOL: u32 = 0;

/// Makes the folder of an archive, and finds out whether one can be written there.
///
/// # Errors
/// The library is not installed, an archive is there already, or the folder cannot be written to.
pub(super) fn check(folder: &Path) -> Result<(), String> {
    let archive = folder.join("traces.otf2");
    if archive.exists() {
        return Err(format!("{} is there already: name another folder, or remove it", archive.display()));
    }
    library::is_there()?;
    nmad_words::file::folder(folder)
        .and_then(|()| tempfile::tempfile_in(folder))
        .map(drop)
        .map_err(|error| format!("cannot write into the folder {}: {error}", folder.display()))
}

/// Writes `traces.otf2` and what belongs to it into a folder.
///
/// # Errors
/// As [`check`], or the disk is full.
pub(super) fn write(all: &[Records], messages: &[Message], folder: &Path) -> Result<(), String> {
    check(folder)?;
    let mut job = Job::new(all);
    all.iter().for_each(|rank| job.calls(rank));
    messages.iter().for_each(|message| job.message(message));
    let links = Links::of(all);
    all.iter().for_each(|rank| job.rails(rank, &links));
    let archive = Archive::begin(folder)?;
    job.write(&archive)?;
    archive.end()
}

/// The events of a location, in the order of time when they are written.
type Events = Vec<(u64, What)>;

/// The contents of an archive. The locations of a rank follow each other; on the first of them are its
/// messages and the counters of its rails.
struct Job<'a> {
    all: &'a [Records],
    origin_ns: u64,
    end_ns: u64,
    /// By rank and thread.
    locations: BTreeMap<(u32, u32), Events>,
    strings: Names,
    regions: Names,
    counters: Names,
}

/// Names and their numbers.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }
}

impl<'a> Job<'a> {
    fn new(all: &'a [Records]) -> Job<'a> {
        let (origin_ns, end_ns) = span_ns(all).unwrap_or_default();
        let mut locations = BTreeMap::new();
        for rank in all {
            let first = threads(rank).first().map_or(0, |(thread, _)| *thread);
            locations.insert((rank.rank, first), Vec::new());
        }
        let (strings, regions, counters) = Default::default();
        Job { all, origin_ns, end_ns, locations, strings, regions, counters }
    }

    fn at(&mut self, at_ns: u64) -> u64 {
        self.end_ns = self.end_ns.max(at_ns);
        at_ns.saturating_sub(self.origin_ns)
    }

    fn first(&mut self, rank: u32) -> Option<&mut Events> {
        self.locations.range_mut((rank, 0)..=(rank, u32::MAX)).next().map(|(_, events)| events)
    }

    fn calls(&mut self, rank: &Records) {
        for (thread, list) in threads(rank) {
            for stretch in list {
                let Some(call) = stretch.call else { continue };
                let region = self.regions.number(&call.call);
                let (start, end) = (self.at(stretch.start_ns), self.at(stretch.end_ns));
                let events = self.locations.entry((rank.rank, thread)).or_default();
                events.extend([(start, What::Enter { region }), (end, What::Leave { region })]);
            }
        }
    }

    fn message(&mut self, message: &Message) {
        let attribute = (PROTOCOL, self.strings.number(&message.protocol));
        // Ranks of the communicator are those whose traces are there.
        let place = |rank: u32| self.all.iter().position(|each| each.rank == rank);
        let (Some(from), Some(to)) = (place(message.from), place(message.to)) else { return };
        let Some(arrived_ns) = message.arrived_ns else { return };
        let (tag, len) = (message.tag as u32, message.len);
        let (sent, arrived) = (self.at(message.sent_ns), self.at(arrived_ns.max(message.sent_ns)));
        if let Some(events) = self.first(message.from) {
            events.push((sent, What::Send { to: to as u32, tag, len, attribute }));
        }
        if let Some(events) = self.first(message.to) {
            events.push((arrived, What::Recv { from: from as u32, tag, len }));
        }
    }

    /// Bytes that each rail carries, whenever they change.
    fn rails(&mut self, rank: &Records, links: &Links) {
        let rails = bars(rank, links);
        for (place, rail) in rails.rails().iter().enumerate() {
            let class = self.counters.number(&format!("bytes on {rail}"));
            let change = |bar: &Bar| [(bar.start_ns, bar.len as i64), (bar.end_ns, -(bar.len as i64))];
            let mut changes: Vec<(u64, i64)> = rails.of(place).flat_map(change).collect();
            changes.sort_unstable();
            let mut bytes = 0;
            for (at_ns, change) in changes {
                bytes += change;
                let at = self.at(at_ns);
                let value = u64::try_from(bytes).unwrap_or(0);
                self.first(rank.rank)
                    .into_iter()
                    .for_each(|list| list.push((at, What::Metric { class, value })));
            }
        }
    }

    fn write(mut self, archive: &Archive) -> Result<(), String> {
        let mut counts = Vec::new();
        for (location, events) in self.locations.values_mut().enumerate() {
            // A call that ends when another one begins has ended before: the sort is stable.
            events.sort_by_key(|(at, _)| *at);
            archive.events(location as u64, events)?;
            counts.push(events.len() as u64);
        }
        let locations: Vec<u64> = (0..counts.len() as u64).collect();
        let definitions = archive.definitions(&locations)?;
        definitions.clock(self.end_ns - self.origin_ns)?;
        self.names(&definitions)?;
        self.places(&definitions, &counts)
    }

    /// Regions, counters and the attribute; strings come before what names them.
    fn names(&mut self, definitions: &Definitions<'_>) -> Result<(), String> {
        let protocol = self.strings.number("protocol");
        let unit = self.strings.number("bytes");
        let strings = &mut self.strings;
        let regions: Vec<u32> = self.regions.list.iter().map(|name| strings.number(name)).collect();
        let counters: Vec<u32> = self.counters.list.iter().map(|name| strings.number(name)).collect();
        self.strings.list.iter().zip(0..).try_for_each(|(text, me)| definitions.string(me, text))?;
        definitions.attribute(PROTOCOL, protocol)?;
        regions.iter().zip(0..).try_for_each(|(name, me)| definitions.region(me, *name))?;
        counters.iter().zip(0..).try_for_each(|(name, me)| definitions.counter(me, *name, unit))
    }

    /// The job, its ranks, their threads, and the communicator of all.
    fn places(&mut self, definitions: &Definitions<'_>, counts: &[u64]) -> Result<(), String> {
        let next = self.strings.list.len();
        let job = self.strings.number("job");
        let world = self.strings.number("MPI_COMM_WORLD");
        let ranks: Vec<u32> =
            self.all.iter().map(|rank| self.strings.number(&format!("rank {}", rank.rank))).collect();
        let name = |(rank, thread): &(u32, u32)| format!("rank {rank}, thread {thread}");
        let threads: Vec<u32> =
            self.locations.keys().map(|place| self.strings.number(&name(place))).collect();
        self.strings
            .list
            .iter()
            .zip(0..)
            .skip(next)
            .try_for_each(|(text, me)| definitions.string(me, text))?;
        definitions.node(0, job)?;
        ranks.iter().zip(0..).try_for_each(|(rank, me)| definitions.process(me, *rank))?;
        for (location, (rank, _)) in self.locations.keys().enumerate() {
            let place = self.all.iter().position(|each| each.rank == *rank).unwrap_or(0);
            definitions.thread(location as u64, threads[location], place as u32, counts[location])?;
        }
        let first = |rank: &Records| self.locations.keys().position(|(other, _)| *other == rank.rank);
        let firsts: Vec<u64> = self.all.iter().filter_map(first).map(|place| place as u64).collect();
        definitions.world(world, &firsts)
    }
}
