//! Requests of which a message cannot be submitted.

use super::*;
use crate::hints::Hints;
use crate::layout::Reason;
use crate::piece::Piece;
use nmad_engine::{Envelope, PeerId, Tag};
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::task::Waker;

/// How often a message is looked at before it has ended.
const LOOKS: usize = 3;

/// What has become of the messages.
#[derive(Default)]
struct Messages {
    submitted: AtomicUsize,
    /// Dropped before they had ended.
    left: AtomicUsize,
}

/// A process beside an owner that answers everything; one message cannot be submitted.
struct Client {
    layout: Arc<Layout>,
    owners: Owners,
    messages: Arc<Messages>,
    refused: Option<usize>,
}

/// A message under way.
struct Message {
    messages: Arc<Messages>,
    len: u64,
    looks: usize,
}

impl Future for Message {
    type Output = Result<Outcome, &'static str>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        self.looks += 1;
        if self.looks < LOOKS {
            return Poll::Pending;
        }
        let (peer, context) = (PeerId(1), nmad_engine::Context(0));
        Poll::Ready(Ok(Ok(Envelope { peer, context, tag: Tag(0), len: self.len, seq: 0 })))
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if self.looks < LOOKS {
            self.messages.left.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Client {
    fn new(refused: Option<usize>) -> Arc<Client> {
        let mut hints = Hints::default();
        let given = [("cb_nodes", "1"), ("nmad_indep_rw", "owners")];
        hints.take(|key| given.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).into()));
        let reason = Reason { is_atomic: false, is_coherent: true, writes: true };
        let layout = Arc::new(Layout::new(&hints, 4096, &[0, 0], &reason));
        Arc::new(Client { layout, owners: Owners::default(), messages: Arc::default(), refused })
    }

    fn submit(&self, len: u64) -> Result<Message, &'static str> {
        if self.refused == Some(self.messages.submitted.load(Ordering::Relaxed)) {
            return Err("refused");
        }
        self.messages.submitted.fetch_add(1, Ordering::Relaxed);
        Ok(Message { messages: self.messages.clone(), len, looks: 0 })
    }

    /// How an access of so many bytes ends.
    fn access(self: &Arc<Client>, kind: Kind, len: u64) -> Result<u64, &'static str> {
        let memory = Kept::new(vec![0; len as usize]);
        let pieces = Pieces::from_iter([Piece { offset: 0, len }]);
        let segments = memory.segments();
        let mut access = pin!(access(self, kind, (&pieces, &segments)));
        let mut context = Context::from_waker(Waker::noop());
        let ended = (0..100).find_map(|_| match access.as_mut().poll(&mut context) {
            Poll::Ready(ended) => Some(ended),
            Poll::Pending => None,
        });
        memory.release();
        ended.expect("every message ends")
    }
}

struct Never;

impl Word for Never {
    fn load(&self) -> u64 {
        0
    }

    fn change(&self, _: impl FnMut(u64) -> u64) -> u64 {
        0
    }
}

impl Asking for Client {
    type Error = &'static str;
    type Ending = Message;

    fn rank(&self) -> i32 {
        1
    }

    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn word(&self) -> Option<&impl Word> {
        None::<&Never>
    }

    fn owners(&self) -> &Owners {
        &self.owners
    }

    fn size(&self) -> Result<u64, Fault> {
        Ok(1 << 20)
    }

    fn send(&self, _: i32, _: Channel, memory: Segments) -> Result<Message, &'static str> {
        self.submit(memory.len())
    }

    fn receive(&self, _: i32, _: u64, memory: Segments) -> Result<Message, &'static str> {
        let message = self.submit(memory.len())?;
        if memory.len() == ANSWER as u64 {
            memory.write(0, &Answer::Done { end: 1 << 20, data: Vec::new() }.encode());
        }
        Ok(message)
    }

    fn serve_here(self: &Arc<Self>, _: Reply, _: Request) {
        panic!("the owner is another process");
    }

    fn is_gone(&self, _: i32) {}

    fn error(&self, _: Failed) -> &'static str {
        "failed"
    }
}

#[test]
fn messages_before_one_that_cannot_be_submitted_are_waited_for() {
    for (kind, len, messages) in
        [(Kind::Read, 5000, 3), (Kind::Write, INLINE, 2), (Kind::Write, INLINE + 1, 3)]
    {
        let whole = Client::new(None);
        assert_eq!(whole.access(kind, len), Ok(len));
        assert_eq!(whole.messages.submitted.load(Ordering::Relaxed), messages);
        for refused in 0..messages {
            let client = Client::new(Some(refused));
            assert_eq!(client.access(kind, len), Err("refused"), "{kind:?}, message {refused}");
            assert_eq!(client.messages.submitted.load(Ordering::Relaxed), refused);
            let left = client.messages.left.load(Ordering::Relaxed);
            assert_eq!(left, 0, "{kind:?} of {len} B, message {refused} refused");
        }
    }
}
