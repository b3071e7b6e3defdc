//! Strategies and rails: choosing, and what each rail has carried.

use crate::code::{ARGUMENT, Answer, Failure, OK};
use crate::live::SessionPointer;
use crate::message::ANY_RANK;
use crate::raw::{Out, Text};
use newmadeleine::RailInfo;
use newmadeleine::engine::Registry;
use std::ffi::{CString, c_char};
use std::ptr::null;
use std::sync::LazyLock;

/// Structures of later versions are longer, but not longer than this.
const SIZE_MAX: usize = 1 << 16;

/// `nmad_rail_info_t`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CRailInfo {
    name: [u8; 64],
    address: [u8; 192],
    bandwidth: u64,
    latency_ns: u64,
    peers: u64,
    packets: u64,
    packet_bytes: u64,
    entries: u64,
    chunks: u64,
    chunk_bytes: u64,
    packets_in: u64,
    chunks_in: u64,
    resent: u64,
    replayed: u64,
}

/// A text with a zero byte behind it, cut to the room there is.
fn text<const ROOM: usize>(text: &str) -> [u8; ROOM] {
    let mut room = [0; ROOM];
    let len = text.floor_char_boundary(ROOM - 1);
    room[..len].copy_from_slice(&text.as_bytes()[..len]);
    room
}

impl From<&RailInfo> for CRailInfo {
    fn from(rail: &RailInfo) -> CRailInfo {
        let counters = rail.counters;
        CRailInfo {
            name: text(&rail.name),
            address: text(&rail.address),
            bandwidth: rail.limits.bandwidth,
            latency_ns: rail.limits.latency_ns,
            peers: rail.peers.into(),
            packets: counters.packets,
            packet_bytes: counters.packet_bytes,
            entries: counters.entries,
            chunks: counters.chunks,
            chunk_bytes: counters.chunk_bytes,
            packets_in: counters.packets_in,
            chunks_in: counters.chunks_in,
            resent: counters.resent,
            replayed: counters.replayed,
        }
    }
}

pub fn count(session: SessionPointer, count: Out<u32>) -> Answer {
    count.required("count")?.set(session.get()?.rails);
    Ok(OK)
}

pub fn info(session: SessionPointer, rail: u32, info: Out<CRailInfo>, size: usize) -> Answer {
    let (handle, info) = (session.get()?, info.required("info")?);
    if !(1..=SIZE_MAX).contains(&size) {
        let text = format!("size {size} is that of no version of nmad_rail_info_t");
        return Err(Failure::new(ARGUMENT, text));
    }
    let rails = handle.session.rails();
    let missing = || Failure::new(ARGUMENT, format!("there is no rail {rail}: there are {}", handle.rails));
    let found = rails.get(rail as usize).ok_or_else(missing)?;
    info.set_prefix(&found.into(), size);
    Ok(OK)
}

pub fn set_strategy(session: SessionPointer, rank: u32, name: Text) -> Answer {
    let handle = session.get()?;
    let rank = (rank != ANY_RANK).then_some(rank);
    handle.session.set_strategy(rank, &name.required("name")?)?;
    Ok(OK)
}

pub fn strategy_name(index: usize) -> *const c_char {
    static NAMES: LazyLock<Vec<CString>> =
        LazyLock::new(|| Registry::default().names().filter_map(|name| CString::new(name).ok()).collect());
    NAMES.get(index).map_or(null(), |name| name.as_ptr())
}
