//! The sending side: encrypts the queue of a link record by record.

use super::{HEAD, LONGEST, around, each};
use crate::tcp::outgoing::{Outgoing, copied};
use nmad_engine::memory::Segments;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Order, Sent};
use nmad_seal::{Broken, Sealer, TAG};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use std::collections::VecDeque;

/// Bytes that are encrypted before a system call sends them: few enough to stay in the caches.
const AT_ONCE: usize = 4 * around(LONGEST);

/// Stands for the end of an order whose last record is still being filled.
const UNKNOWN: usize = usize::MAX;

/// Encrypts the stream that one side sends.
#[derive(Debug)]
pub struct Sealing {
    sealer: Sealer,
    /// Records that the kernel has not taken entirely.
    bytes: Vec<u8>,
    /// Lengths of the records that are not encrypted yet.
    lens: Vec<usize>,
    /// Number of bytes of the records that the kernel has taken.
    written: usize,
    /// Orders that are entirely in these records, each with the end of its last record.
    orders: VecDeque<(usize, Order)>,
}

impl Sealing {
    /// Creates the sending side of a new link.
    pub fn new(sealer: Sealer) -> Sealing {
        Sealing { sealer, bytes: Vec::new(), lens: Vec::new(), written: 0, orders: VecDeque::new() }
    }

    /// Returns whether the kernel has taken all records.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns a measure of progress: it changes with each successful write.
    pub fn written(&self) -> (usize, u64) {
        (self.orders.len(), self.written as u64)
    }

    /// Removes and returns the orders that the kernel has not taken entirely.
    pub fn take_unsent(&mut self) -> impl Iterator<Item = Order> {
        self.bytes.clear();
        self.written = 0;
        std::mem::take(&mut self.orders).into_iter().map(|(_, order)| order)
    }

    /// Writes the records that are left, or else encrypts the beginning of the queue and writes that, as much
    /// as the kernel takes. Of the first order in the queue `begun` bytes were encrypted before. `staging` is
    /// the rail's buffer. Returns whether the kernel has taken all records.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(
        &mut self,
        fd: BorrowedFd<'_>,
        staging: &mut Vec<u8>,
        (queue, begun): (&mut VecDeque<Outgoing>, &mut u64),
        sent: &mut Vec<Order>,
    ) -> Result<bool, Errno> {
        if self.is_empty() {
            staging.clear();
            std::mem::swap(&mut self.bytes, staging);
            self.fill(queue, begun)?;
        }
        // Without this flag the kernel would send the incomplete segment at the end of each call at once.
        let more = if queue.is_empty() { SendFlags::empty() } else { SendFlags::MORE };
        while self.written < self.bytes.len() {
            match net::send(fd, &self.bytes[self.written..], SendFlags::NOSIGNAL | more) {
                Ok(taken) => self.written += taken,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(e) => return Err(e),
            }
        }
        while self.orders.front().is_some_and(|(end, _)| *end <= self.written) {
            sent.extend(self.orders.pop_front().map(|(_, order)| order));
        }
        let is_done = self.written == self.bytes.len();
        if is_done {
            self.bytes.clear();
            self.written = 0;
            std::mem::swap(&mut self.bytes, staging);
        }
        Ok(is_done)
    }

    /// Encrypts a packet and sends it at once, if it fits into one record; no order may be in the queue or in
    /// the records. Bytes that the kernel does not take are left for [`Sealing::write`].
    #[inline]
    pub fn send_now(
        &mut self,
        fd: BorrowedFd<'_>,
        staging: &mut Vec<u8>,
        (to, number): (PeerId, u32),
        (head, data): (&[u64], &Segments),
    ) -> Sent {
        if size_of_val(head) as u64 + data.len() > LONGEST as u64 {
            return Sent::Retry;
        }
        staging.clear();
        std::mem::swap(&mut self.bytes, staging);
        let start = begin(&mut self.bytes);
        data.append_behind(head, &mut self.bytes);
        self.end(start);
        if self.encrypt().is_err() {
            // The error recurs when the packet is posted.
            return Sent::Retry;
        }
        let taken = net::send(fd, &self.bytes, SendFlags::NOSIGNAL);
        if taken == Ok(self.bytes.len()) {
            self.bytes.clear();
            std::mem::swap(&mut self.bytes, staging);
            return Sent::Done;
        }
        // An error recurs when the rail writes again, and is reported then.
        self.written = taken.unwrap_or(0);
        self.orders.push_back((self.bytes.len(), copied((to, number), (head, data))));
        Sent::Posted
    }

    /// Encrypts the beginning of the queue.
    fn fill(&mut self, queue: &mut VecDeque<Outgoing>, begun: &mut u64) -> Result<(), Errno> {
        let mut record = None;
        while let Some(first) = queue.front()
            && self.bytes.len() < AT_ONCE
        {
            let start = *record.get_or_insert_with(|| begin(&mut self.bytes));
            let room = (LONGEST - (self.bytes.len() - start - HEAD)) as u64;
            let piece = first.piece(*begun);
            let len = piece.len.min(room);
            first.append(*begun, len, &mut self.bytes);
            *begun += len;
            if *begun == first.len
                && let Some(first) = queue.pop_front()
            {
                *begun = 0;
                self.orders.push_back((UNKNOWN, first.order));
            }
            if len == room || piece.ends_record && len == piece.len {
                self.end(start);
                record = None;
            }
        }
        if let Some(start) = record {
            self.end(start);
        }
        self.encrypt()
    }

    /// Ends the record that begins at `start`; [`Sealing::encrypt`] encrypts it.
    fn end(&mut self, start: usize) {
        let len = self.bytes.len() - start - HEAD;
        self.bytes[start..start + HEAD].copy_from_slice(&(len as u32).to_le_bytes());
        self.bytes.extend_from_slice(&[0; TAG]);
        self.lens.push(around(len));
        // The receiver can use a record only when it is complete.
        let whole = self.bytes.len();
        self.orders.iter_mut().rev().take_while(|(end, _)| *end == UNKNOWN).for_each(|(end, _)| *end = whole);
    }

    /// Encrypts the records of the buffer.
    fn encrypt(&mut self) -> Result<(), Errno> {
        let Sealing { sealer, bytes, lens, .. } = self;
        let is_right = match &lens[..] {
            [_] => encrypt(bytes, |head, data| sealer.seal(head, data)),
            _ => encrypt_all(sealer, bytes, lens),
        };
        lens.clear();
        if !is_right {
            // Plaintext must not be sent. A direction ends after 2^64 records.
            bytes.clear();
            return Err(Errno::OVERFLOW);
        }
        Ok(())
    }
}

/// Encrypts records of these lengths, which follow each other; returns whether there were numbers for all.
fn encrypt_all(sealer: &mut Sealer, mut bytes: &mut [u8], mut lens: &[usize]) -> bool {
    while !lens.is_empty() {
        let records = sealer.numbers(lens.len()).zip(lens).map(|(number, len)| {
            let (record, rest) = std::mem::take(&mut bytes).split_at_mut(*len);
            bytes = rest;
            (number, record)
        });
        let done = each(records, |(number, record)| encrypt(record, |head, data| number.seal(head, data)));
        match done {
            None | Some(0) => return false,
            Some(count) => lens = &lens[count..],
        }
    }
    true
}

/// Encrypts one record; returns whether `seal` could.
#[inline]
fn encrypt(record: &mut [u8], seal: impl FnOnce(&[u8], &mut [u8]) -> Result<[u8; TAG], Broken>) -> bool {
    let (head, sealed) = record.split_at_mut(HEAD);
    let Some((data, tag)) = sealed.split_last_chunk_mut() else { return false };
    seal(head, data).map(|made| *tag = made).is_ok()
}

/// Begins a record and returns its offset.
fn begin(bytes: &mut Vec<u8>) -> usize {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEAD]);
    start
}
