//! Processes that agree upon something: small messages of the library's own, in steps, so that a thread
//! that waits for them can do other things meanwhile.

use super::Members;
use crate::at_hand;
use crate::error::{Class, Error, Result};
use crate::request::explain;
use crate::task::Ending;
use crate::world::{from_session, world};
use newmadeleine::engine::{Context, PeerId, Source, Tag, TagMatch};
use newmadeleine::{Hints, Segments};
use nmad_file::Kept;
use nmad_mpi_base::colors::Colors;
use nmad_mpi_base::tree;
use std::sync::Arc;

/// Some processes, a context and a tag for what they tell each other; rank 0 leads.
pub(crate) struct Party {
    pub(super) members: Arc<Members>,
    pub(super) rank: i32,
    pub(super) context: Context,
    pub(super) tag: u64,
    /// The leader of another party that agrees with this one; the leaders talk to each other.
    pub(super) other: Option<Other>,
}

/// The leader of another party, and how to talk to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Other {
    pub(super) process: u32,
    pub(super) context: Context,
    pub(super) tag: u64,
}

impl Party {
    /// The greatest of everybody's values, place by place; of both parties if there are two.
    pub(super) async fn greatest<const N: usize>(&self, mine: [i64; N]) -> Result<[i64; N]> {
        let mut greatest = mine;
        let children = self.children();
        for &child in &children {
            maximum(&mut greatest, &self.recv(child, 8 * N).await?);
        }
        if self.rank > 0 {
            self.send(self.parent(), encode(&greatest)).await?;
            maximum(&mut greatest, &self.recv(self.parent(), 8 * N).await?);
        } else if let Some(other) = self.other {
            let theirs = other.exchange(encode(&greatest)).await?;
            maximum(&mut greatest, &theirs);
        }
        for &child in children.iter().rev() {
            self.send(child, encode(&greatest)).await?;
        }
        Ok(greatest)
    }

    /// What everybody has, one after the other in the order of ranks; all give as many bytes.
    pub(crate) async fn gather(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        let each = mine.len();
        let children = self.children();
        let mut all = mine;
        for &child in &children {
            all.extend(self.recv(child, each * self.below(child)).await?);
        }
        if self.rank > 0 {
            self.send(self.parent(), all).await?;
            all = self.recv(self.parent(), each * self.members.len() as usize).await?;
        }
        for &child in children.iter().rev() {
            self.send(child, all.clone()).await?;
        }
        Ok(all)
    }

    /// What everybody has, one after the other in the order of ranks; the lengths may differ.
    pub(super) async fn collect(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        let mut all = mine;
        for &child in &self.children() {
            all.extend(self.recv_any(child).await?);
        }
        self.conclude(all).await
    }

    /// The colors and keys of everybody.
    pub(super) async fn colors(&self, color: i32, key: i32) -> Result<Vec<u8>> {
        let mut all = Colors::of(self.rank as u32, color, key);
        for &child in &self.children() {
            if !all.add(&self.recv_any(child).await?, self.members.len() as u32) {
                return Err(Class::INTERN.error(format!("the colors of rank {child} arrived malformed")));
            }
        }
        self.conclude(all.write()).await
    }

    /// Gives what the subtree of this rank has to its parent; what the leader has of everybody.
    async fn conclude(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        if self.rank > 0 {
            self.send_any(self.parent(), &mine).await?;
            return self.spread(None).await;
        }
        self.spread(Some(mine)).await
    }

    /// What the leader has. The leader, and nobody else, gives it.
    pub(crate) async fn spread(&self, mine: Option<Vec<u8>>) -> Result<Vec<u8>> {
        let data = match mine {
            Some(data) => data,
            None => self.recv_any(self.parent()).await?,
        };
        for &child in self.children().iter().rev() {
            self.send_any(child, &data).await?;
        }
        Ok(data)
    }

    /// What the leader of the other party has for us, for what our leader has for them.
    pub(super) async fn exchange(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        let theirs = match self.other {
            Some(other) if self.rank == 0 => {
                let len = other.exchange(encode(&[mine.len() as i64])).await?;
                let into = decode(&len)[0] as usize;
                let (to, out) = ((other.process, other.context, other.tag), submit_data(mine));
                let receive = submit_blank(to, into)?;
                let send = out(to)?;
                let theirs = receive.await?;
                send.await?;
                Some(theirs)
            }
            _ => None,
        };
        self.spread(theirs).await
    }

    fn children(&self) -> Vec<i32> {
        tree::children(self.rank, self.members.len())
    }

    fn parent(&self) -> i32 {
        tree::parent(self.rank)
    }

    /// How many ranks the subtree of a child has.
    fn below(&self, child: i32) -> usize {
        tree::below(child, self.members.len()) as usize
    }

    fn to(&self, rank: i32) -> Result<(u32, Context, u64)> {
        let none = || Class::INTERN.error(format!("rank {rank} is not in the party"));
        Ok((self.members.world(rank).ok_or_else(none)?, self.context, self.tag))
    }

    async fn send(&self, to: i32, data: Vec<u8>) -> Result<()> {
        submit_data(data)(self.to(to)?)?.await
    }

    async fn recv(&self, from: i32, len: usize) -> Result<Vec<u8>> {
        submit_blank(self.to(from)?, len)?.await
    }

    async fn send_any(&self, to: i32, data: &[u8]) -> Result<()> {
        self.send(to, encode(&[data.len() as i64])).await?;
        self.send(to, data.to_vec()).await
    }

    async fn recv_any(&self, from: i32) -> Result<Vec<u8>> {
        let len = decode(&self.recv(from, 8).await?)[0];
        self.recv(from, len as usize).await
    }
}

impl Other {
    /// Both leaders send as many bytes.
    async fn exchange(self, mine: Vec<u8>) -> Result<Vec<u8>> {
        let to = (self.process, self.context, self.tag);
        let receive = submit_blank(to, mine.len())?;
        submit_data(mine)(to)?.await?;
        receive.await
    }
}

pub(crate) type Way = (u32, Context, u64);

/// Submits a message from memory, which must not change until the message has ended.
pub(crate) fn lend((process, context, tag): Way, memory: Segments) -> Result<Ending> {
    let send = |engine: &mut newmadeleine::engine::Engine| {
        engine.send(PeerId(process), context, Tag(tag), memory, Hints::default())
    };
    at_hand::submit(send).map(Ending)
}

/// Posts a receive into memory.
pub(crate) fn fill((process, context, tag): Way, memory: Segments) -> Result<Ending> {
    let from = Source::Peer(PeerId(process));
    at_hand::submit(|engine| engine.recv(from, context, TagMatch::Exact(Tag(tag)), memory)).map(Ending)
}

/// Sends data; it is submitted at once.
pub(crate) fn submit_data(data: Vec<u8>) -> impl FnOnce(Way) -> Result<Ends> {
    let data = Kept::new(data);
    move |way| {
        let sent = lend(way, data.segments())?;
        Ok(Box::pin(async move {
            let outcome = sent.await?;
            data.release();
            outcome.map(drop).map_err(failed)
        }))
    }
}

pub(crate) type Ends = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Receives data of a known length; it is posted at once.
pub(crate) fn submit_blank(
    way: Way,
    len: usize,
) -> Result<impl Future<Output = Result<Vec<u8>>> + Send + use<>> {
    let (process, data) = (way.0, Kept::new(vec![0; len]));
    let filled = fill(way, data.segments())?;
    Ok(async move {
        let outcome = filled.await?;
        let data = data.release();
        match outcome {
            Ok(envelope) if envelope.len == len as u64 => Ok(data),
            Ok(envelope) => Err(Class::OTHER.error(format!(
                "process {process} takes part in another collective operation: it sent {} B, not {len}",
                envelope.len
            ))),
            Err(error) => Err(failed(error)),
        }
    })
}

pub(crate) fn failed(error: newmadeleine::engine::Error) -> Error {
    // A thread with the engine at hand has the lock already that the usual way to these words takes.
    if let newmadeleine::engine::Error::PeerLost(PeerId(rank)) = error
        && let Some(why) =
            at_hand::with(|engine| engine.inspect().failure(PeerId(rank)).map(|why| why.to_string()))
    {
        let why = why.unwrap_or_default();
        return from_session(newmadeleine::SessionError::PeerLost { rank, why });
    }
    match world() {
        Ok(world) => explain(world, error),
        Err(gone) => gone,
    }
}

fn maximum<const N: usize>(values: &mut [i64; N], others: &[u8]) {
    values.iter_mut().zip(decode(others)).for_each(|(value, other)| *value = (*value).max(other));
}

/// Numbers as bytes.
pub(crate) fn encode(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Bytes as numbers.
pub(crate) fn decode(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect()
}
