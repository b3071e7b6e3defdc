//! libibverbs as an adapter: a reliable connected queue pair for each peer; one shared receive queue and
//! one completion queue for all of them.
//!
//! Operations posted between two flushes are passed to the device as one list, with one call and one
//! completion. Of short messages only each sixteenth requests a completion: the device has copied the bytes
//! when the call returns.

use super::device::{Device, Object, failure, remedy};
use super::port::Port;
use super::sys::*;
use crate::fabric::adapter::{Abilities, Adapter, Completion, Place, Posted, Purpose};
use hashbrown::HashMap;
use nmad_engine::memory::Segment;
use nmad_engine::transfer::access::{Act, Atomics, RemoteAccess};
use rustix::fd::BorrowedFd;
use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Operations of one queue pair at once.
const DEPTH: u32 = 128;
/// Longest inline message in bytes, if the device supports it.
const INLINE: u32 = 220;
/// A completion covers at most this many short messages: an eighth of the queue, whose entries it frees.
const QUIET: u32 = 16;
/// Completions read at once.
const AT_ONCE: usize = 32;
/// Reads of one peer at once for which both sides reserve resources.
const READS: u8 = 16;
/// Bit in the work request id of a receive; the low bits are its slot.
const RECEIVE: u64 = 1 << 63;
/// Acknowledgement timeout: 4.096 us times two to this power, 67 ms. After seven unanswered retries the
/// queue pair fails.
const TIMEOUT: u8 = 14;
const RETRIES: u8 = 7;
/// Unlimited retries while the peer has no receive buffer (the value 7 of the standard).
const FOREVER: u8 = 7;
/// Delay that a receiver without buffer requests: 0.64 ms (code 12 of the standard).
const NOT_READY: u8 = 12;
/// Bytes of connection data that one side sends to the other.
const TOLD: usize = 28;

/// A list of operations that was posted with one call.
struct Chain {
    queue: u32,
    count: u32,
    slots: Vec<u32>,
    operations: Vec<u32>,
}

/// The part of a queue pair that completions need.
struct Queue {
    name: u32,
    busy: Arc<AtomicU32>,
}

impl Queue {
    fn lives(&self) -> bool {
        Arc::strong_count(&self.busy) > 1
    }
}

/// One peer's queue pair.
pub(crate) struct Endpoint {
    pair: Object<Qp>,
    number: u32,
    packets: u32,
    inline: u32,
    /// Operations in the send queue.
    busy: Arc<AtomicU32>,
    /// Operations without a completion of their own that the next completion covers, besides those of its
    /// list.
    quiet: u32,
    /// The next list requests a completion in any case.
    is_signaled: bool,
    /// The next list. Pointers from its operations to their pieces are set when it is posted.
    list: Vec<(SendWr, Sge)>,
    slots: Vec<u32>,
    operations: Vec<u32>,
}

// SAFETY: pointers in the list are set when it is posted, and read by that call only.
unsafe impl Send for Endpoint {}

/// Registered memory.
pub(crate) struct Region {
    at: Object<Mr>,
    start: u64,
}

/// One port of a device.
pub(crate) struct VerbsAdapter {
    device: Arc<Device>,
    queues: HashMap<u32, Queue>,
    chains: HashMap<u64, Chain>,
    /// Queue pair and slot of inline messages, which are complete at once.
    copied: Vec<(u32, u32)>,
    posted: u64,
    has_ended: bool,
}

impl VerbsAdapter {
    /// Opens the device of a port.
    ///
    /// # Errors
    /// The library or the device is missing, or the port is down; the text has the remedy.
    pub(super) fn open(port: Port) -> Result<VerbsAdapter, String> {
        let (device, queues, chains) = (Device::open(port)?, HashMap::new(), HashMap::new());
        Ok(VerbsAdapter { device, queues, chains, copied: Vec::new(), posted: 0, has_ended: false })
    }

    /// Creates a queue pair, with inline data if the device supports it.
    fn pair(&self) -> Result<(Object<Qp>, u32), String> {
        let (device, cq) = (&self.device, self.device.completions.at());
        let mut why = io::Error::from_raw_os_error(0);
        for max_inline_data in [INLINE, 0] {
            let cap = QpCap { max_send_wr: DEPTH, max_send_sge: 1, max_inline_data, ..QpCap::default() };
            let mut attr = QpInitAttr {
                qp_context: ptr::null_mut(),
                send_cq: cq,
                recv_cq: cq,
                srq: device.buffers.at(),
                cap,
                qp_type: IBV_QPT_RC,
                sq_sig_all: 0,
            };
            let f = &device.functions;
            // SAFETY: all objects are open.
            match unsafe { Object::new((f.create_qp)(device.domain.at(), &raw mut attr), f.destroy_qp) } {
                Ok(pair) => return Ok((pair, max_inline_data)),
                Err(e) => why = e,
            }
        }
        Err(format!("gets no link: cannot make a queue pair: {why}{}", remedy(&why)))
    }

    /// Access rights of peers through an endpoint, and to exposed memory.
    fn remote_access(&self) -> c_int {
        let all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
        if self.device.atomics == Atomics::None { all } else { all | IBV_ACCESS_REMOTE_ATOMIC }
    }

    fn modify(&self, pair: &Object<Qp>, mut attr: QpAttr, mask: c_int) -> Result<(), String> {
        // SAFETY: the queue pair is open.
        let status = unsafe { (self.device.functions.modify_qp)(pair.at(), &raw mut attr, mask) };
        match status {
            0 => Ok(()),
            errno => {
                let (e, state) = (io::Error::from_raw_os_error(errno), attr.qp_state);
                Err(format!("gets no link: the queue pair does not enter state {state}: {e}"))
            }
        }
    }

    /// Handles a completion of posted operations.
    fn completed(&mut self, wc: &Wc, found: &mut Vec<Completion>) {
        if wc.status != IBV_WC_SUCCESS {
            // The chain's entries are freed when the queue pair ends, which is soon.
            found.extend(self.queues.get(&wc.qp_num).map(|queue| {
                let endpoint = Some(queue.name);
                Completion::Broken { endpoint, why: failure(wc.status) }
            }));
            return;
        }
        let Some(chain) = self.chains.remove(&wc.wr_id) else { return };
        if let Some(queue) = self.queues.get(&chain.queue) {
            queue.busy.fetch_sub(chain.count, Relaxed);
        }
        found.extend(chain.slots.into_iter().map(|slot| Completion::Sent { slot }));
        let operated = |token| Completion::Operated { token, is_good: true };
        found.extend(chain.operations.into_iter().map(operated));
    }

    /// Removes queue pairs that have ended.
    fn tidy(&mut self) {
        self.queues.retain(|_, queue| queue.lives());
        self.chains.retain(|_, chain| self.queues.contains_key(&chain.queue));
    }
}

fn add(
    endpoint: &mut Endpoint,
    opcode: u32,
    send_flags: u32,
    memory: Segment,
    lkey: u32,
    there: Place,
) -> Posted {
    if endpoint.busy.load(Relaxed) + endpoint.list.len() as u32 >= DEPTH {
        return Posted::Full;
    }
    let (addr, length) = (memory.start.expose_provenance() as u64, memory.len as u32);
    let work = SendWr {
        wr_id: 0,
        next: ptr::null_mut(),
        sg_list: ptr::null_mut(),
        num_sge: 1,
        opcode,
        send_flags,
        imm_data: 0,
        remote_addr: there.address,
        rkey: there.key,
        rest: [0; 9],
    };
    endpoint.list.push((work, Sge { addr, length, lkey }));
    Posted::Taken
}

impl Adapter for VerbsAdapter {
    type Endpoint = Endpoint;
    type Region = Region;

    fn abilities(&self) -> Abilities {
        Abilities {
            inline: 0,
            operation: self.device.attributes.max_msg_sz.clamp(1 << 16, 1 << 30) as usize,
            can_read: true,
            remote: RemoteAccess::Network(self.device.atomics),
            ends_operations: true,
            is_direct: true,
            pins_pages: true,
            bandwidth: 0,
        }
    }

    fn endpoint(&mut self, name: u32) -> Result<(Endpoint, Vec<u8>), String> {
        if self.has_ended {
            return Err("gets no link: the rail has ended".into());
        }
        self.tidy();
        let (pair, inline) = self.pair()?;
        let (port, attributes) = (&self.device.port, &self.device.attributes);
        let access = self.remote_access() as u32;
        let attr = QpAttr {
            qp_state: IBV_QPS_INIT,
            qp_access_flags: access,
            port_num: port.number,
            ..QpAttr::default()
        };
        self.modify(&pair, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)?;
        // SAFETY: the queue pair is open.
        let number = unsafe { (*pair.at()).qp_num };
        let random = crate::handshake::random();
        let random = random.map_err(|e| format!("gets no link: no random bytes from the system: {e}"))?;
        let packets = u32::from_le_bytes([random[0], random[1], random[2], 0]);
        let mut told = Vec::with_capacity(TOLD);
        told.extend_from_slice(&number.to_le_bytes());
        told.extend_from_slice(&packets.to_le_bytes());
        told.extend_from_slice(&attributes.lid.to_le_bytes());
        told.extend_from_slice(&[attributes.link_layer, attributes.active_mtu as u8]);
        self.device.gid.iter().for_each(|half| told.extend_from_slice(&half.to_ne_bytes()));
        let busy = Arc::new(AtomicU32::new(0));
        self.queues.insert(number, Queue { name, busy: busy.clone() });
        let (list, slots, operations) = (Vec::new(), Vec::new(), Vec::new());
        let (quiet, is_signaled) = (0, false);
        Ok((
            Endpoint { pair, number, packets, inline, busy, quiet, is_signaled, list, slots, operations },
            told,
        ))
    }

    fn join(&mut self, endpoint: &mut Endpoint, theirs: &[u8]) -> Result<(), String> {
        let Ok(theirs) = <[u8; TOLD]>::try_from(theirs) else {
            return Err("broke the handshake: that is no queue pair".into());
        };
        let word =
            |at: usize| u32::from_le_bytes([theirs[at], theirs[at + 1], theirs[at + 2], theirs[at + 3]]);
        let half = |at: usize| theirs[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let (layer, mtu) = (theirs[10], u32::from(theirs[11]));
        let (port, attributes) = (&self.device.port, &self.device.attributes);
        if layer != attributes.link_layer {
            return Err("is on another kind of network: one side has InfiniBand, the other Ethernet".into());
        }
        let ah_attr = AhAttr {
            dgid: [half(12), half(20)],
            sgid_index: port.identifier,
            hop_limit: 64,
            dlid: u16::from_le_bytes([theirs[8], theirs[9]]),
            is_global: u8::from(layer == IBV_LINK_LAYER_ETHERNET),
            port_num: port.number,
            ..AhAttr::default()
        };
        let attr = QpAttr {
            qp_state: IBV_QPS_RTR,
            // If the MTUs of the two sides differ, use the smaller one.
            path_mtu: attributes.active_mtu.min(mtu),
            dest_qp_num: word(0),
            rq_psn: word(4),
            ah_attr,
            max_dest_rd_atomic: READS,
            min_rnr_timer: NOT_READY,
            ..QpAttr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        self.modify(&endpoint.pair, attr, mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)?;
        let attr = QpAttr {
            qp_state: IBV_QPS_RTS,
            timeout: TIMEOUT,
            retry_cnt: RETRIES,
            rnr_retry: FOREVER,
            sq_psn: endpoint.packets,
            max_rd_atomic: READS,
            ..QpAttr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN;
        self.modify(&endpoint.pair, attr, mask | IBV_QP_MAX_QP_RD_ATOMIC)
    }

    fn register(&mut self, memory: Segment, purpose: Purpose) -> Result<Region, String> {
        let access = match purpose {
            Purpose::Messages => IBV_ACCESS_LOCAL_WRITE,
            Purpose::Target => IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
            Purpose::Source => IBV_ACCESS_REMOTE_READ,
            Purpose::Exposed => self.remote_access(),
        };
        let (f, domain) = (&self.device.functions, self.device.domain.at());
        let register = |access| {
            // SAFETY: the domain is open; the memory stays until the region is dropped.
            unsafe { Object::new((f.reg_mr)(domain, memory.start.cast(), memory.len, access), f.dereg_mr) }
        };
        let failed = |e| format!("cannot register {} B: {e}{}", memory.len, remedy(&e));
        // If the system refuses to lock the memory, try on-demand paging, which some devices support. Not
        // for message buffers, because few devices receive messages into such memory.
        let at = register(access).or_else(|e| match purpose {
            Purpose::Messages => Err(e),
            _ => register(access | IBV_ACCESS_ON_DEMAND).or(Err(e)),
        });
        Ok(Region { at: at.map_err(failed)?, start: memory.start.expose_provenance() as u64 })
    }

    fn place(&self, region: &Region) -> Place {
        // SAFETY: the registration is open.
        Place { address: region.start, key: u64::from(unsafe { (*region.at.at()).rkey }) }
    }

    fn receive(&mut self, buffer: Segment, region: &Region, slot: u32) -> Result<(), String> {
        let (srq, mut bad) = (self.device.buffers.at(), ptr::null_mut());
        let (addr, length) = (buffer.start.expose_provenance() as u64, buffer.len as u32);
        // SAFETY: the queue and the registration are open; the call copies the structures that the pointers
        // refer to.
        let status = unsafe {
            let mut sge = Sge { addr, length, lkey: (*region.at.at()).lkey };
            let (wr_id, next, sg_list) = (RECEIVE | u64::from(slot), ptr::null_mut(), &raw mut sge);
            let mut work = RecvWr { wr_id, next, sg_list, num_sge: 1 };
            ((*(*srq).context).ops.post_srq_recv)(srq, &raw mut work, &raw mut bad)
        };
        match status {
            0 => Ok(()),
            errno => Err(format!("cannot be given a buffer: {}", io::Error::from_raw_os_error(errno))),
        }
    }

    #[inline]
    fn send(
        &mut self,
        endpoint: &mut Endpoint,
        message: Segment,
        region: &Region,
        slot: u32,
    ) -> Result<Posted, String> {
        let flags = if message.len <= endpoint.inline as usize { IBV_SEND_INLINE } else { 0 };
        // SAFETY: the registration is open.
        let lkey = unsafe { (*region.at.at()).lkey };
        let posted = add(endpoint, IBV_WR_SEND, flags, message, lkey, Place { address: 0, key: 0 });
        if posted == Posted::Taken {
            endpoint.slots.push(slot);
        }
        Ok(posted)
    }

    fn operate(
        &mut self,
        endpoint: &mut Endpoint,
        act: Act,
        (here, region): (Segment, &Region),
        there: Place,
        token: u32,
    ) -> Result<Posted, String> {
        // SAFETY: the registration is open.
        let lkey = unsafe { (*region.at.at()).lkey };
        let opcode = match act {
            Act::Put => IBV_WR_RDMA_WRITE,
            Act::Get => IBV_WR_RDMA_READ,
            Act::Add(_) => IBV_WR_ATOMIC_FETCH_AND_ADD,
            Act::Swap(..) => IBV_WR_ATOMIC_CMP_AND_SWP,
        };
        let posted = add(endpoint, opcode, 0, here, lkey, there);
        if posted == Posted::Taken {
            endpoint.operations.push(token);
            if let (Act::Add(first) | Act::Swap(first, _), Some((work, _))) = (act, endpoint.list.last_mut())
            {
                let second = if let Act::Swap(_, second) = act { second } else { 0 };
                (work.rkey, work.rest[0], work.rest[1]) = (first, second, there.key);
            }
        }
        Ok(posted)
    }

    #[inline]
    fn flush(&mut self, endpoint: &mut Endpoint) -> Result<(), String> {
        let count = endpoint.list.len() as u32;
        let is_copied = endpoint.list.iter().all(|(work, _)| work.send_flags & IBV_SEND_INLINE != 0);
        let is_quiet = is_copied && !endpoint.is_signaled && endpoint.quiet + count < QUIET;
        let Some((last, _)) = endpoint.list.last_mut() else { return Ok(()) };
        if !is_quiet {
            last.send_flags |= IBV_SEND_SIGNALED;
        }
        self.posted += 1;
        // Linked from the last to the first: each operation points to the next one.
        let mut next = ptr::null_mut();
        for (work, piece) in endpoint.list.iter_mut().rev() {
            (work.wr_id, work.next, work.sg_list) = (self.posted, next, &raw mut *piece);
            next = work;
        }
        let (pair, mut bad) = (endpoint.pair.at(), ptr::null_mut());
        // SAFETY: the queue pair is open, and the call copies the list, which is not moved meanwhile.
        let status = unsafe { ((*(*pair).context).ops.post_send)(pair, next, &raw mut bad) };
        endpoint.list.clear();
        endpoint.busy.fetch_add(count, Relaxed);
        endpoint.quiet += count;
        if is_quiet {
            self.copied.extend(endpoint.slots.drain(..).map(|slot| (endpoint.number, slot)));
        } else {
            let slots = std::mem::take(&mut endpoint.slots);
            let operations = std::mem::take(&mut endpoint.operations);
            let (queue, count) = (endpoint.number, std::mem::take(&mut endpoint.quiet));
            self.chains.insert(self.posted, Chain { queue, count, slots, operations });
        }
        match status {
            0 => Ok(()),
            errno => Err(format!("cannot be reached: {}", io::Error::from_raw_os_error(errno))),
        }
    }

    #[inline]
    fn poll(&mut self, found: &mut Vec<Completion>) {
        if self.has_ended {
            return;
        }
        // The slots of a queue pair that has ended were reclaimed with it.
        let lives = |number: &u32| self.queues.get(number).is_some_and(Queue::lives);
        let copied = self.copied.iter().filter(|(number, _)| lives(number));
        found.extend(copied.map(|&(_, slot)| Completion::Sent { slot }));
        self.copied.clear();
        let mut entries = [Wc::default(); AT_ONCE];
        let cq = self.device.completions.at();
        // SAFETY: the queue is open; no more entries are written than there are.
        let got = unsafe { ((*(*cq).context).ops.poll_cq)(cq, AT_ONCE as c_int, entries.as_mut_ptr()) };
        for wc in entries.iter().take(usize::try_from(got).unwrap_or(0)) {
            match wc.wr_id & RECEIVE {
                0 => self.completed(wc, found),
                _ => {
                    let slot = wc.wr_id as u32;
                    found.push(match wc.status {
                        IBV_WC_SUCCESS => Completion::Received { slot, len: wc.byte_len as usize },
                        _ => Completion::Wasted { slot },
                    });
                }
            }
        }
    }

    fn conclude(&mut self, endpoint: &mut Endpoint) -> bool {
        endpoint.is_signaled = endpoint.quiet > 0;
        endpoint.is_signaled
    }

    fn end(&mut self) {
        // Each endpoint ends its operations when it is dropped.
        self.has_ended = true;
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: it belongs to the channel, which lives as long as `self`.
        Some(unsafe { BorrowedFd::borrow_raw((*self.device.channel.at()).fd) })
    }

    fn arm(&mut self) -> bool {
        let (f, channel) = (&self.device.functions, self.device.channel.at());
        let (mut cq, mut context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: channel and queue are open; the descriptor does not block; each event is acknowledged.
        unsafe {
            while (f.get_cq_event)(channel, &raw mut cq, &raw mut context) == 0 {
                (f.ack_cq_events)(cq, 1);
            }
            let cq = self.device.completions.at();
            ((*(*cq).context).ops.req_notify_cq)(cq, 0) == 0
        }
    }
}
