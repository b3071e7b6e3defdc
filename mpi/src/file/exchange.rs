//! The exchange with the owners of regions, in two phases that overlap: data travel while owners access the
//! file for the region before.
//!
//! Every rank tells each owner first which regions of it the access touches, with the length of the list of
//! places and of the data. Then list and data of each region follow in ascending order, those of a few
//! regions at a time, so that owners need memory for two regions. Of a write, an owner writes what all
//! ranks have sent for a region as few pieces as there can be, straight from where the data arrived; where
//! two ranks write the same bytes, rank by rank. Of a read, it reads the bytes that somebody wants, each
//! once, and sends every rank its own. A failure of the file system does not end the exchange: all messages
//! go on, so that nobody waits in vain, and all ranks hear of it at the end.

use super::told::{self, Begun, Told};
use super::transfer::Transfer;
use super::wire::{Counted, Side, Wire};
use super::{File, Kind, error_of, lock};
use crate::comm::{Ends, decode, encode};
use crate::error::{Class, Error, Result};
use newmadeleine::Segments;
use nmad_file::Kept;
use nmad_file::plan::{self, Load};
use nmad_file::{Part, Pieces, Regions, joined, list, merge};
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Parts per owner of which a rank has messages under way.
const AHEAD: usize = 2;
/// Slices shorter than this on average are copied together before they are written: a slice costs the system
/// 50 to 80 ns, and a copy of so many bytes 30 to 60 ns (the machine of [`nmad_file::plan`]).
const SHORT: u64 = 256;

/// Most numbers of an announcement: no access touches more regions.
const NUMBERS_MAX: usize = 1 << 32;
/// Most bytes of a list for each byte of data.
const LIST_MAX: i64 = 32;

/// The exchange of one access.
pub(super) struct Exchange<'a> {
    pub(super) file: &'a File,
    pub(super) kind: Kind,
    pub(super) wire: &'a Wire,
    pub(super) regions: &'a Regions,
}

/// What a rank announces of a part: region, bytes of the list, bytes of data.
type Entry = [i64; 3];

/// Parts of others, by region and rank.
type Announced = BTreeMap<u64, Vec<(i32, Entry)>>;

/// A part of another rank that has arrived.
struct Arrived {
    rank: i32,
    pieces: Pieces,
    data: Option<Kept>,
}

/// A part that is on its way.
type Arriving = Pin<Box<dyn Future<Output = Result<Arrived>> + Send>>;

/// The first thing that went wrong.
#[derive(Default)]
struct Failures(Option<Error>);

impl Failures {
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.get_or_insert(error);
                None
            }
        }
    }
}

impl Exchange<'_> {
    /// Runs it: bytes of this rank's access that were done, and what went wrong.
    pub(super) async fn run(&self, transfer: Option<&Transfer>) -> (u64, Option<Error>) {
        let parts = transfer.map_or(Vec::new(), |transfer| self.regions.divide(&transfer.pieces));
        let memory = transfer.map_or(Segments::empty(), |transfer| transfer.memory.clone());
        let me = self.file.rank();
        let (own, others): (Vec<Part>, Vec<Part>) =
            parts.into_iter().partition(|part| self.regions.owner(part.region) == me);
        let client = self.ask(&others, &memory);
        let owner = self.own(&own, &memory);
        let ((asked, first), (owned, second)) = Both::new(client, owner).await;
        (asked + owned, first.or(second))
    }

    /// The side of a rank that wants something of owners: bytes that were done.
    async fn ask(&self, parts: &[Part], memory: &Segments) -> (u64, Option<Error>) {
        let mut failures = Failures::default();
        let lists: Vec<Vec<u8>> = parts.iter().map(|part| list::encode(&part.pieces)).collect();
        let mut announcing = Vec::new();
        for &owner in self.regions.owners().iter().filter(|owner| **owner != self.file.rank()) {
            let entries =
                parts.iter().zip(&lists).filter(|(part, _)| self.regions.owner(part.region) == owner);
            let entries: Vec<i64> = entries
                .flat_map(|(part, list)| [part.region as i64, list.len() as i64, part.pieces.len() as i64])
                .collect();
            announcing.extend(failures.note(self.wire.send(
                self.file,
                owner,
                encode(&[entries.len() as i64]),
            )));
            if !entries.is_empty() {
                announcing.extend(failures.note(self.wire.send(self.file, owner, encode(&entries))));
            }
        }
        let (mut under_way, mut done) = (VecDeque::new(), 0);
        let most = AHEAD * self.regions.owners().len();
        for (part, list) in parts.iter().zip(lists) {
            if under_way.len() == most {
                done += self.ended(under_way.pop_front(), &mut failures).await;
            }
            let owner = self.regions.owner(part.region);
            let data = memory.slice(part.begin, part.pieces.len());
            under_way.push_back(self.begin(owner, list, data));
        }
        while !under_way.is_empty() {
            done += self.ended(under_way.pop_front(), &mut failures).await;
        }
        for each in announcing {
            failures.note(each.await);
        }
        (done, failures.0)
    }

    /// Sends the list of a part, and its data there or here.
    fn begin(&self, owner: i32, list: Vec<u8>, data: Segments) -> Result<(Ends, Counted)> {
        let listed = self.wire.send(self.file, owner, list)?;
        let moved: Counted = match self.kind {
            Kind::Read => self.wire.fill(self.file, (owner, Side::Wanting), data)?,
            Kind::Write => {
                let len = data.len();
                let lent = self.wire.lend(self.file, (owner, Side::Owner), data)?;
                Box::pin(async move { lent.await.map(|()| len) })
            }
        };
        Ok((listed, moved))
    }

    async fn ended(&self, part: Option<Result<(Ends, Counted)>>, failures: &mut Failures) -> u64 {
        let Some((listed, moved)) = part.and_then(|part| failures.note(part)) else { return 0 };
        failures.note(listed.await);
        failures.note(moved.await).unwrap_or(0)
    }

    /// The side of an owner: bytes of its own access that were done.
    async fn own(&self, parts: &[Part], memory: &Segments) -> (u64, Option<Error>) {
        let mut failures = Failures::default();
        if !self.regions.owners().contains(&self.file.rank()) {
            return (0, None);
        }
        let announced = self.announced(&mut failures).await;
        let mut regions: Vec<u64> =
            announced.keys().copied().chain(parts.iter().map(|part| part.region)).collect();
        regions.sort_unstable();
        regions.dedup();
        let (mut sent, mut done) = (VecDeque::new(), 0);
        let mut next = regions.first().map(|region| self.expect(announced.get(region)));
        for (index, region) in regions.iter().enumerate() {
            let arriving = next.take().unwrap_or_default();
            // What comes next travels while this region is written.
            next = regions.get(index + 1).map(|region| self.expect(announced.get(region)));
            let mut arrived = Vec::new();
            for each in arriving {
                let each = match failures.note(each) {
                    Some(each) => failures.note(each.await),
                    None => None,
                };
                arrived.extend(each);
            }
            let own = parts.iter().find(|part| part.region == *region);
            let own = own.map(|part| (&part.pieces, memory.slice(part.begin, part.pieces.len())));
            match self.kind {
                Kind::Write => {
                    let written = self.write(&arrived, own.as_ref()).map_err(error_of);
                    let is_written = failures.note(written).is_some();
                    done += own.filter(|_| is_written).map_or(0, |(pieces, _)| pieces.len());
                    arrived.into_iter().for_each(|each| drop(each.data.map(Kept::release)));
                }
                Kind::Read => {
                    done += self.read(&arrived, own.as_ref(), (&mut sent, &mut failures));
                    if sent.len() > AHEAD {
                        left(sent.pop_front(), &mut failures).await;
                    }
                }
            }
        }
        while !sent.is_empty() {
            left(sent.pop_front(), &mut failures).await;
        }
        (done, failures.0)
    }

    /// What all other ranks want of this owner.
    async fn announced(&self, failures: &mut Failures) -> Announced {
        let me = self.file.rank();
        let others = (0..self.file.ranks()).filter(|rank| *rank != me);
        let counts: Vec<_> = others.map(|rank| (rank, self.wire.receive(self.file, rank, 8))).collect();
        let mut lists = Vec::new();
        for (rank, count) in counts {
            let Some(count) = failures.note(count) else { continue };
            let count = failures.note(count.await).map_or(0, |bytes| decode(&bytes)[0]);
            if let Some(len) = usize::try_from(count).ok().filter(|count| (1..=NUMBERS_MAX).contains(count)) {
                lists.push((rank, self.wire.receive(self.file, rank, 8 * len)));
            }
        }
        let mut announced = Announced::new();
        for (rank, list) in lists {
            let Some(list) = failures.note(list) else { continue };
            let entries = failures.note(list.await).map(|bytes| decode(&bytes)).unwrap_or_default();
            for entry in entries.as_chunks::<3>().0.iter().filter(|entry| self.is_part(entry)) {
                announced.entry(entry[0] as u64).or_default().push((rank, *entry));
            }
        }
        announced
    }

    /// Whether an entry is about a part of a region of this owner.
    fn is_part(&self, [region, list_len, data_len]: &Entry) -> bool {
        let is_own =
            u64::try_from(*region).is_ok_and(|region| self.regions.owner(region) == self.file.rank());
        let most = i64::try_from(self.regions.unit()).unwrap_or(i64::MAX);
        is_own && (1..=most).contains(data_len) && (1..=data_len.saturating_mul(LIST_MAX)).contains(list_len)
    }

    /// Receives what others send for a region.
    fn expect(&self, announced: Option<&Vec<(i32, Entry)>>) -> Vec<Result<Arriving>> {
        announced.into_iter().flatten().map(|(rank, entry)| self.expect_part(*rank, *entry)).collect()
    }

    fn expect_part(&self, rank: i32, [_, list_len, data_len]: Entry) -> Result<Arriving> {
        let listed = self.wire.receive(self.file, rank, list_len as usize)?;
        let data = match self.kind {
            Kind::Read => None,
            Kind::Write => {
                let room = Kept::new(vec![0; data_len as usize]);
                Some((self.wire.fill(self.file, (rank, Side::Owner), room.segments())?, room))
            }
        };
        Ok(Box::pin(async move {
            let listed = listed.await;
            let data = match data {
                Some((filled, room)) => {
                    filled.await?;
                    Some(room)
                }
                None => None,
            };
            let wrong = || Class::INTERN.error(format!("rank {rank} has sent places that are none"));
            let pieces = list::decode(&listed?, data_len as u64).ok_or_else(wrong)?;
            Ok(Arrived { rank, pieces, data })
        }))
    }

    /// Writes what ranks have sent for one region.
    fn write(
        &self,
        arrived: &[Arrived],
        own: Option<&(&Pieces, Segments)>,
    ) -> std::result::Result<(), nmad_file::Fault> {
        let others = arrived.iter().filter_map(|each| {
            let data = each.data.as_ref()?;
            Some((each.rank, each.pieces.clone(), data.segments()))
        });
        let own = own.map(|(pieces, memory)| (self.file.rank(), (*pieces).clone(), memory.clone()));
        let mut all: Vec<(i32, Pieces, Segments)> = others.chain(own).collect();
        all.sort_by_key(|(rank, ..)| *rank);
        let pieces: Vec<Pieces> = all.iter().map(|(_, pieces, _)| pieces.clone()).collect();
        let Some(merged) = merge::merge(&pieces) else {
            return all.iter().try_for_each(|(_, pieces, memory)| self.put(pieces, memory));
        };
        let source = |source: &merge::Source| all[source.access].2.slice(source.begin, source.piece.len);
        if merged.pieces.len() >= SHORT * merged.sources.len() as u64 {
            let slices: Vec<Segments> = merged.sources.iter().map(source).collect();
            return self.put(&merged.pieces, &joined(&slices));
        }
        let mut copy = Vec::with_capacity(merged.pieces.len() as usize);
        merged.sources.iter().for_each(|each| source(each).append_to(&mut copy));
        let copy = Kept::new(copy);
        let written = self.put(&merged.pieces, &copy.segments());
        copy.release();
        written
    }

    /// Writes to the file; what single ranks have written there before and waits is older.
    fn put(&self, pieces: &Pieces, memory: &Segments) -> std::result::Result<(), nmad_file::Fault> {
        self.file.desk.owner().cache.drop_pieces(pieces);
        let begun = self.file.begun();
        self.file.disk.write(pieces, memory)?;
        self.tell_region(begun, pieces, 0);
        Ok(())
    }

    /// Tells the user what this owner has read, with gaps of up to `gap` bytes, or written in a region.
    fn tell_region(&self, begun: Option<Begun>, pieces: &Pieces, gap: u64) {
        let Some(begun) = begun else { return };
        let (kind, load, owners) = (self.kind, Load::of(pieces), vec![self.file.rank()]);
        let predicted_ns = match kind {
            Kind::Read => plan::read_ns(pieces, gap),
            Kind::Write => load.written_ns(),
        };
        self.file.ended(&begun, Told { kind, way: told::Way::Region, owners, load, predicted_ns });
    }

    /// Reads what ranks want of one region, and sends it: bytes that were read for this rank.
    fn read(
        &self,
        arrived: &[Arrived],
        own: Option<&(&Pieces, Segments)>,
        (sent, failures): (&mut VecDeque<Sent>, &mut Failures),
    ) -> u64 {
        let others = arrived.iter().map(|each| &each.pieces);
        let wanted: Vec<Pieces> = others.chain(own.map(|(pieces, _)| *pieces)).cloned().collect();
        let union = merge::union(&wanted);
        let data = Kept::new(vec![0; union.len() as usize]);
        let gap = lock(&self.file.hints).gap();
        self.file.desk.owner().cache.write_out(&self.file.disk);
        let begun = self.file.begun();
        let read = self.file.disk.read(&union, &data.segments(), gap);
        self.tell_region(begun.filter(|_| read.is_ok()), &union, gap);
        let len = failures.note(read.map_err(error_of)).unwrap_or(0);
        let whole = data.segments();
        let of = |pieces: &Pieces| {
            let slice = |&(begin, len): &(u64, u64)| whole.slice(begin, len);
            joined(&merge::within(pieces, &union, len).iter().map(slice).collect::<Vec<_>>())
        };
        let mut messages = Vec::new();
        for each in arrived {
            messages.extend(failures.note(self.wire.lend(
                self.file,
                (each.rank, Side::Wanting),
                of(&each.pieces),
            )));
        }
        let done = own.map_or(0, |(pieces, memory)| {
            let mine = of(pieces);
            memory.slice(0, mine.len()).copy_from(&mine)
        });
        sent.push_back(Sent { data, messages });
        done
    }
}

/// Data of a region that are sent to those who want them.
struct Sent {
    data: Kept,
    messages: Vec<Ends>,
}

/// Waits until the data of a region have left.
async fn left(sent: Option<Sent>, failures: &mut Failures) {
    let Some(Sent { data, messages }) = sent else { return };
    for message in messages {
        failures.note(message.await);
    }
    data.release();
}

/// Two things that go on side by side.
struct Both<A: Future, B: Future> {
    first: Pin<Box<A>>,
    second: Pin<Box<B>>,
    ended: (Option<A::Output>, Option<B::Output>),
}

impl<A: Future, B: Future> Both<A, B> {
    fn new(first: A, second: B) -> Both<A, B> {
        Both { first: Box::pin(first), second: Box::pin(second), ended: (None, None) }
    }
}

impl<A, B> Future for Both<A, B>
where
    A: Future<Output: Unpin>,
    B: Future<Output: Unpin>,
{
    type Output = (A::Output, B::Output);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let both = &mut *self;
        if both.ended.0.is_none()
            && let Poll::Ready(ended) = both.first.as_mut().poll(context)
        {
            both.ended.0 = Some(ended);
        }
        if both.ended.1.is_none()
            && let Poll::Ready(ended) = both.second.as_mut().poll(context)
        {
            both.ended.1 = Some(ended);
        }
        match (both.ended.0.take(), both.ended.1.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            ended => {
                both.ended = ended;
                Poll::Pending
            }
        }
    }
}
