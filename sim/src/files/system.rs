//! A simulated file system: a server that has the file, and what each host keeps of it. Where hosts do not
//! see each other's writes at once, as with NFS, a host keeps whole pages, reads from them, and writes them
//! back as a whole: two hosts that write to one page undo each other's writes.

use crate::rng::Rng;
use nmad_file::{Backing, Cause, Fault, Piece, Pieces};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Of a hundred writes this number also have the system write a page back, or forget one.
const SPONTANEOUS: u64 = 30;

/// The file as the server has it.
#[derive(Debug, Default)]
pub struct Server {
    bytes: Vec<u8>,
    /// Writes to the server up to now.
    writes: u64,
    /// From which write on it has no space, and for how many.
    full: Option<(u64, u64)>,
    /// Writes that it has refused.
    refused: u64,
}

impl Server {
    /// An empty file.
    pub fn new(full: Option<(u64, u64)>) -> Server {
        Server { full, ..Server::default() }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes that it has refused up to now.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Fault> {
        let number = self.writes;
        self.writes += 1;
        if self.full.is_some_and(|(from, count)| number >= from && number - from < count) {
            self.refused += 1;
            return Err(Fault::worded(Cause::NoSpace, "no space left"));
        }
        let end = offset as usize + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn read(&self, offset: u64, data: &mut [u8]) {
        data.fill(0);
        let from = self.bytes.get(offset as usize..).unwrap_or_default();
        let len = from.len().min(data.len());
        data[..len].copy_from_slice(&from[..len]);
    }
}

/// A page that a host keeps.
struct Page {
    bytes: Vec<u8>,
    is_dirty: bool,
}

/// What a host keeps of the file.
struct Known {
    pages: BTreeMap<u64, Page>,
    /// The length of the file; none: it asks the server.
    size: Option<u64>,
    rng: Rng,
}

/// The file as one host has it.
pub struct Client {
    server: Arc<Mutex<Server>>,
    /// None: hosts see each other's writes at once.
    known: Option<Mutex<Known>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// That of a host; `rng`: it keeps pages.
    pub fn new(server: Arc<Mutex<Server>>, rng: Option<Rng>) -> Client {
        let known = rng.map(|rng| Mutex::new(Known { pages: BTreeMap::new(), size: None, rng }));
        Client { server, known }
    }

    /// Has the server take what the host keeps.
    ///
    /// # Errors
    /// It has no space.
    pub fn flush(&self) -> Result<(), Fault> {
        let Some(known) = &self.known else { return Ok(()) };
        let mut known = lock(known);
        let numbers: Vec<u64> = known.pages.keys().copied().collect();
        let mut flushed = Ok(());
        for number in numbers {
            flushed = flushed.and(known.write_back(&mut lock(&self.server), number));
        }
        flushed
    }

    /// Forgets what may be older than what others have written.
    pub fn forget(&self) {
        if let Some(known) = &self.known {
            let mut known = lock(known);
            known.pages.retain(|_, page| page.is_dirty);
            // What waits to be written is part of the file for this host.
            if known.pages.is_empty() {
                known.size = None;
            }
        }
    }

    /// Sets the length of the file. Nothing waits to be written.
    pub fn set_size(&self, size: u64) {
        lock(&self.server).bytes.resize(size as usize, 0);
        if let Some(known) = &self.known {
            let mut known = lock(known);
            known.pages.clear();
            known.size = Some(size);
        }
    }
}

impl Known {
    fn size(&mut self, server: &Server) -> u64 {
        *self.size.get_or_insert(server.bytes.len() as u64)
    }

    fn page(&mut self, server: &Server, number: u64) -> &mut Page {
        self.pages.entry(number).or_insert_with(|| {
            let mut bytes = vec![0; PAGE as usize];
            server.read(number * PAGE, &mut bytes);
            Page { bytes, is_dirty: false }
        })
    }

    fn write(&mut self, server: &Server, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        self.size = Some(self.size(server).max(end));
        let mut at = offset;
        while at < end {
            let (number, inside) = (at / PAGE, (at % PAGE) as usize);
            let len = (PAGE as usize - inside).min((end - at) as usize);
            let from = (at - offset) as usize;
            let page = self.page(server, number);
            page.bytes[inside..inside + len].copy_from_slice(&data[from..from + len]);
            page.is_dirty = true;
            at += len as u64;
        }
    }

    /// Writes a page to the server, as far as the file goes. One that is refused is lost.
    fn write_back(&mut self, server: &mut Server, number: u64) -> Result<(), Fault> {
        let size = self.size(server);
        let Some(page) = self.pages.get_mut(&number).filter(|page| page.is_dirty) else { return Ok(()) };
        page.is_dirty = false;
        let len = size.saturating_sub(number * PAGE).min(PAGE) as usize;
        let written = server.write(number * PAGE, &page.bytes[..len]);
        if written.is_err() {
            self.pages.remove(&number);
            self.size = None;
        }
        written
    }

    /// What a system does by itself.
    fn act_alone(&mut self, server: &mut Server) {
        if self.pages.is_empty() || !self.rng.percent(SPONTANEOUS) {
            return;
        }
        let numbers: Vec<u64> = self.pages.keys().copied().collect();
        let number = *self.rng.pick(&numbers);
        // A failure would be told by the next flush; it is not drawn here.
        let is_full = server.full.is_some();
        if !is_full && self.write_back(server, number).is_ok() && self.rng.percent(50) {
            self.pages.remove(&number);
        }
    }
}

impl Backing for Client {
    fn write(&self, pieces: &Pieces, data: &[u8]) -> Result<(), Fault> {
        let mut server = lock(&self.server);
        let mut rest = data;
        for &Piece { offset, len } in pieces.list() {
            let (now, behind) = rest.split_at(len as usize);
            match &self.known {
                None => server.write(offset, now)?,
                Some(known) => lock(known).write(&server, offset, now),
            }
            rest = behind;
        }
        if let Some(known) = &self.known {
            lock(known).act_alone(&mut server);
        }
        Ok(())
    }

    fn read(&self, pieces: &Pieces, data: &mut [u8]) -> Result<u64, Fault> {
        let server = lock(&self.server);
        let mut rest = data;
        for &Piece { offset, len } in pieces.list() {
            let (now, behind) = rest.split_at_mut(len as usize);
            rest = behind;
            let Some(known) = &self.known else {
                server.read(offset, now);
                continue;
            };
            let mut known = lock(known);
            for (at, byte) in (offset..).zip(now.iter_mut()) {
                *byte = known.page(&server, at / PAGE).bytes[(at % PAGE) as usize];
            }
        }
        drop(server);
        Ok(pieces.inside(self.size()?))
    }

    fn size(&self) -> Result<u64, Fault> {
        let server = lock(&self.server);
        Ok(match &self.known {
            None => server.bytes.len() as u64,
            Some(known) => lock(known).size(&server),
        })
    }
}
