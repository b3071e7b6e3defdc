//! libfabric as an adapter: one reliable datagram endpoint, through which all peers are reached.

use super::fabric::{Fabric, Object, control, status_text};
use super::provider::Provider;
use super::sys::*;
use crate::fabric::adapter::{Abilities, Adapter, Completion, Place, Posted, Purpose};
use nmad_engine::memory::Segment;
use nmad_engine::transfer::access::{Act, RemoteAccess};
use rustix::fd::BorrowedFd;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::net::IpAddr;
use std::ptr;

/// Completions read at once.
const AT_ONCE: usize = 32;
/// Longest read in bytes, even if the provider permits longer ones.
const READ_MAX: usize = 1 << 30;
const EAGAIN: isize = libc::EAGAIN as isize;

/// Identifies an operation in its completion. Meanwhile the library uses the beginning of the structure
/// (`struct fi_context2`).
#[repr(C)]
struct Context {
    space: [*mut c_void; 8],
    kind: Kind,
    number: u32,
    endpoint: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Receive,
    Send,
    Read,
}

/// The contexts of operations of one kind, by slot or token. Their addresses never change.
struct Contexts {
    kind: Kind,
    #[expect(clippy::vec_box, reason = "the library has the addresses")]
    list: Vec<Box<Context>>,
}

// SAFETY: the addresses in them are the library's, which is used by one thread at a time.
unsafe impl Send for Contexts {}

impl Contexts {
    fn new(kind: Kind) -> Contexts {
        Contexts { kind, list: Vec::new() }
    }

    fn of(&mut self, number: u32, endpoint: u32) -> *mut c_void {
        while self.list.len() <= number as usize {
            let (space, number) = ([ptr::null_mut(); 8], self.list.len() as u32);
            self.list.push(Box::new(Context { space, kind: self.kind, number, endpoint: 0 }));
        }
        let context = &mut *self.list[number as usize];
        context.endpoint = endpoint;
        ptr::from_mut(context).cast()
    }
}

/// A receive buffer that the provider has not taken yet.
struct Waiting {
    start: usize,
    len: usize,
    description: usize,
    slot: u32,
}

/// A peer's address.
pub(crate) struct Endpoint {
    name: u32,
    address: u64,
}

/// Registered memory; none: the provider needs no registration for this purpose.
pub(crate) struct Region {
    registered: Option<Object<FidMr>>,
    /// Base of the addresses that a peer uses.
    base: u64,
}

impl Region {
    fn description(&self) -> *mut c_void {
        // SAFETY: the registration is open.
        self.registered.as_ref().map_or(ptr::null_mut(), |mr| unsafe { (*mr.at()).mem_desc })
    }
}

/// libfabric on one interface.
pub(crate) struct OfiAdapter {
    fabric: Fabric,
    abilities: Abilities,
    mr_mode: i32,
    /// Mask of the keys that this side chooses.
    key_mask: u64,
    keys: u64,
    receives: Contexts,
    sends: Contexts,
    reads: Contexts,
    waiting: VecDeque<Waiting>,
}

impl OfiAdapter {
    /// Opens a provider on an address of this machine.
    ///
    /// # Errors
    /// The library or the provider is missing; the text has the remedy.
    pub(super) fn open(provider: Provider, address: IpAddr) -> Result<OfiAdapter, String> {
        let fabric = Fabric::open(provider, address)?;
        let info = fabric.info.at();
        // SAFETY: the library has filled in all parts.
        let (inline, longest, mr_mode, key_len) = unsafe {
            let domain = (*info).domain_attr;
            (
                (*(*info).tx_attr).inject_size,
                (*(*info).ep_attr).max_msg_size,
                (*domain).mr_mode,
                (*domain).mr_key_size,
            )
        };
        if longest < crate::fabric::slots::SLOT {
            let (name, need) = (provider.name, crate::fabric::slots::SLOT);
            return Err(format!("provider {name} takes messages of {longest} B only, {need} are needed"));
        }
        let abilities = Abilities {
            inline,
            operation: longest.min(READ_MAX),
            can_read: provider.reads,
            // One endpoint serves all peers, so writes of a peer whose link was closed cannot be stopped.
            remote: RemoteAccess::None,
            ends_operations: false,
            is_direct: provider.is_direct,
            pins_pages: false,
            bandwidth: 0,
        };
        let key_mask = if key_len < 8 { (1 << (8 * key_len)) - 1 } else { u64::MAX };
        let random = crate::handshake::random();
        let random = random.map_err(|e| format!("gets no link: no random bytes from the system: {e}"))?;
        let keys = random.first_chunk().map_or(1, |bytes| u64::from_le_bytes(*bytes));
        let [receives, sends, reads] = [Kind::Receive, Kind::Send, Kind::Read].map(Contexts::new);
        let waiting = VecDeque::new();
        Ok(OfiAdapter { fabric, abilities, mr_mode, key_mask, keys, receives, sends, reads, waiting })
    }

    fn endpoint_at(&self) -> Result<*mut FidEp, String> {
        self.fabric.endpoint.as_ref().map(Object::at).ok_or_else(|| "the endpoint has ended".into())
    }

    /// Converts the status of a posting call.
    fn posted(&self, status: isize) -> Result<Posted, String> {
        match status {
            0 => Ok(Posted::Taken),
            status if status == -EAGAIN => Ok(Posted::Full),
            status => Err(format!("cannot be reached: {}", status_text(&self.fabric.functions, status))),
        }
    }

    fn post_receive(&mut self, waiting: &Waiting) -> Result<Posted, String> {
        let context = self.receives.of(waiting.slot, 0);
        let at = self.endpoint_at()?;
        let (start, description) = (waiting.start as *mut c_void, waiting.description as *mut c_void);
        // SAFETY: the endpoint is open; the buffer belongs to the rail until its completion, and is
        // registered if required.
        let status =
            unsafe { ((*(*at).msg).recv)(at, start, waiting.len, description, FI_ADDR_UNSPEC, context) };
        self.posted(status)
    }

    fn post_waiting(&mut self) {
        while let Some(first) = self.waiting.pop_front() {
            if !matches!(self.post_receive(&first), Ok(Posted::Taken)) {
                return self.waiting.push_front(first);
            }
        }
    }

    /// Reads a failure from the completion queue; returns whether there was one.
    #[cold]
    fn failure(&mut self, found: &mut Vec<Completion>) -> bool {
        // SAFETY: all zeroes are valid for each field.
        let mut entry: FiCqErrEntry = unsafe { std::mem::zeroed() };
        let cq = self.fabric.completions.at();
        // SAFETY: the queue is open.
        let got = unsafe { ((*(*cq).ops).readerr)(cq, &raw mut entry, 0) };
        if got != 1 {
            return false;
        }
        let why = format!("cannot be reached: {}", status_text(&self.fabric.functions, entry.err as isize));
        // SAFETY: a context that this side has passed, or null.
        let Some(context) = (unsafe { entry.op_context.cast::<Context>().as_ref() }) else {
            log::debug!("libfabric reports a failure of no operation: {why}");
            return true;
        };
        let (number, endpoint) = (context.number, Some(context.endpoint));
        match context.kind {
            Kind::Receive => found.push(Completion::Wasted { slot: number }),
            Kind::Send => {
                found.push(Completion::Sent { slot: number });
                found.push(Completion::Broken { endpoint, why });
            }
            Kind::Read => found.push(Completion::Operated { token: number, is_good: false }),
        }
        true
    }
}

impl Adapter for OfiAdapter {
    type Endpoint = Endpoint;
    type Region = Region;

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn endpoint(&mut self, name: u32) -> Result<(Endpoint, Vec<u8>), String> {
        Ok((Endpoint { name, address: FI_ADDR_UNSPEC }, self.fabric.name()?))
    }

    fn join(&mut self, endpoint: &mut Endpoint, theirs: &[u8]) -> Result<(), String> {
        endpoint.address = self.fabric.find(theirs)?;
        Ok(())
    }

    fn register(&mut self, memory: Segment, purpose: Purpose) -> Result<Region, String> {
        if purpose != Purpose::Source && self.mr_mode & FI_MR_LOCAL == 0 {
            return Ok(Region { registered: None, base: 0 });
        }
        let access = match purpose {
            Purpose::Messages => FI_SEND | FI_RECV,
            Purpose::Target => FI_READ,
            Purpose::Source | Purpose::Exposed => FI_REMOTE_READ,
        };
        self.keys = self.keys.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let (domain, mut at) = (self.fabric.domain.at(), ptr::null_mut());
        let key = if self.mr_mode & FI_MR_PROV_KEY == 0 { self.keys & self.key_mask } else { 0 };
        // SAFETY: the domain is open; the memory lives until the region is dropped.
        let status = unsafe {
            let (fid, start) = (&raw mut (*domain).fid, memory.start.cast());
            ((*(*domain).mr).reg)(fid, start, memory.len, access, 0, key, 0, &raw mut at, ptr::null_mut())
        };
        if status != 0 {
            let (len, why) = (memory.len, status_text(&self.fabric.functions, status as isize));
            return Err(format!(
                "cannot register {len} B: {why} (is the limit of locked memory high enough? `ulimit -l`)"
            ));
        }
        let registered = Object::new(at)?;
        if self.mr_mode & FI_MR_ENDPOINT != 0 {
            let (fid, endpoint) = (registered.fid(), self.endpoint_at()?);
            // SAFETY: both are open.
            let bound = unsafe { ((*(*fid).ops).bind)(fid, &raw mut (*endpoint).fid, 0) };
            if bound != 0 || control(fid, FI_ENABLE).is_err() {
                return Err("libfabric cannot bind a registration to its endpoint".into());
            }
        }
        let base = if self.mr_mode & FI_MR_VIRT_ADDR != 0 { memory.start.addr() as u64 } else { 0 };
        Ok(Region { registered: Some(registered), base })
    }

    fn place(&self, region: &Region) -> Place {
        // SAFETY: the registration is open.
        let key = region.registered.as_ref().map_or(0, |mr| unsafe { (*mr.at()).key });
        Place { address: region.base, key }
    }

    fn receive(&mut self, buffer: Segment, region: &Region, slot: u32) -> Result<(), String> {
        let (start, len) = (buffer.start.expose_provenance(), buffer.len);
        let waiting = Waiting { start, len, description: region.description().expose_provenance(), slot };
        if !self.waiting.is_empty() || self.post_receive(&waiting)? == Posted::Full {
            self.waiting.push_back(waiting);
        }
        Ok(())
    }

    #[inline]
    fn send(
        &mut self,
        endpoint: &mut Endpoint,
        message: Segment,
        region: &Region,
        slot: u32,
    ) -> Result<Posted, String> {
        let at = self.endpoint_at()?;
        let (start, len, to) = (message.start.cast_const().cast(), message.len, endpoint.address);
        if len <= self.abilities.inline {
            // SAFETY: the endpoint is open, and copies the message.
            let status = unsafe { ((*(*at).msg).inject)(at, start, len, to) };
            return Ok(match self.posted(status)? {
                Posted::Taken => Posted::Done,
                other => other,
            });
        }
        let context = self.sends.of(slot, endpoint.name);
        // SAFETY: the endpoint is open; the buffer is not accessed until its completion.
        let status = unsafe { ((*(*at).msg).send)(at, start, len, region.description(), to, context) };
        self.posted(status)
    }

    /// Posts a read; the abilities permit no other operation.
    fn operate(
        &mut self,
        endpoint: &mut Endpoint,
        act: Act,
        (into, region): (Segment, &Region),
        from: Place,
        token: u32,
    ) -> Result<Posted, String> {
        if act != Act::Get {
            return Err("cannot be accessed this way".into());
        }
        let at = self.endpoint_at()?;
        let context = self.reads.of(token, endpoint.name);
        let (start, len, description) = (into.start.cast(), into.len, region.description());
        let Place { address, key } = from;
        // SAFETY: the endpoint is open; the memory belongs to the receive region until the completion.
        let status = unsafe {
            ((*(*at).rma).read)(at, start, len, description, endpoint.address, address, key, context)
        };
        self.posted(status)
    }

    fn flush(&mut self, _: &mut Endpoint) -> Result<(), String> {
        Ok(())
    }

    #[inline]
    fn poll(&mut self, found: &mut Vec<Completion>) {
        if self.fabric.endpoint.is_none() {
            // Some providers access endpoints that have been closed.
            return;
        }
        if !self.waiting.is_empty() {
            self.post_waiting();
        }
        let empty = FiCqMsgEntry { op_context: ptr::null_mut(), flags: 0, len: 0 };
        let mut entries = [empty; AT_ONCE];
        let cq = self.fabric.completions.at();
        // SAFETY: the queue is open, and its entries have this format.
        let got = unsafe { ((*(*cq).ops).read)(cq, entries.as_mut_ptr().cast(), AT_ONCE) };
        if got == -FI_EAVAIL {
            self.failure(found);
        }
        for entry in entries.iter().take(usize::try_from(got).unwrap_or(0)) {
            // SAFETY: a context that this side has passed, or null.
            let Some(context) = (unsafe { entry.op_context.cast::<Context>().as_ref() }) else { continue };
            let number = context.number;
            found.push(match context.kind {
                Kind::Receive => Completion::Received { slot: number, len: entry.len },
                Kind::Send => Completion::Sent { slot: number },
                Kind::Read => Completion::Operated { token: number, is_good: true },
            });
        }
    }

    fn end(&mut self) {
        self.fabric.endpoint = None;
        self.waiting.clear();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let descriptor = self.fabric.descriptor;
        // SAFETY: it belongs to the queue, which lives as long as `self`.
        (descriptor >= 0).then(|| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    fn arm(&mut self) -> bool {
        let mut fid = self.fabric.completions.fid();
        let fabric = self.fabric.fabric.at();
        // SAFETY: both are open.
        unsafe { ((*(*fabric).ops).trywait)(fabric, &raw mut fid, 1) == 0 }
    }
}
