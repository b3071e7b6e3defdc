//! Rate limits: a token bucket filter (tc-tbf(8)) on what a device sends.

use super::interface::set_gso_max_len;
use crate::Rate;
use nmad_netlink::{Message, Socket, find_attribute, u32_at, u64_at};
use std::io;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_LINKLAYER_ETHERNET: u8 = 1;
const LINKLAYER_AT: usize = 1;
const RATE_AT: usize = 8;
const LIMIT_AT: usize = 24;
const PARMS_LEN: usize = 36;

/// What may leave at once: two of the largest segments, else the kernel cuts them up, which costs more
/// than the rail is worth.
const BURST_LEN: u32 = 128 * 1024;
const GSO_MAX_LEN: u32 = 64 * 1024;
/// How long a packet may wait in the device before packets are dropped.
const LATENCY_MS: u64 = 20;

/// Limits what the device `index` sends to `rate`, or lifts the limit.
pub(crate) fn shape(socket: &mut Socket, index: u32, rate: Rate) -> io::Result<()> {
    match rate {
        Rate::Unlimited => lift(socket, index),
        Rate::Limited(bits) => {
            set_gso_max_len(socket, index, GSO_MAX_LEN)?;
            limit(socket, index, bits / 8)
        }
    }
}

/// The rate in a queue's description (the attributes of `RTM_NEWQDISC`), if that is a limit.
pub(super) fn read(attributes: &[u8]) -> Option<Rate> {
    if find_attribute(attributes, libc::TCA_KIND)? != b"tbf\0" {
        return None;
    }
    let options = find_attribute(attributes, libc::TCA_OPTIONS)?;
    let wide = find_attribute(options, TCA_TBF_RATE64).and_then(|value| u64_at(value, 0));
    let narrow = || u32_at(find_attribute(options, TCA_TBF_PARMS)?, RATE_AT).map(u64::from);
    Some(Rate::Limited(wide.or_else(narrow)? * 8))
}

fn limit(socket: &mut Socket, index: u32, bytes_per_s: u64) -> io::Result<()> {
    let message = Message::new(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_REPLACE)
        .put(&header(index))
        .text(libc::TCA_KIND, "tbf")
        .nest(libc::TCA_OPTIONS, |options| {
            options
                .attribute(TCA_TBF_PARMS, &parameters(bytes_per_s))
                .attribute(TCA_TBF_RATE64, &bytes_per_s.to_ne_bytes())
                .attribute(TCA_TBF_BURST, &BURST_LEN.to_ne_bytes())
        });
    socket.order(message)
}

fn lift(socket: &mut Socket, index: u32) -> io::Result<()> {
    match socket.order(Message::new(libc::RTM_DELQDISC, 0).put(&header(index))) {
        // There was no limit.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        other => other,
    }
}

/// `struct tc_tbf_qopt`. The link layer is named so that the kernel asks for no table of transmission
/// times, and the burst in ticks stays zero since it is given in bytes.
fn parameters(bytes_per_s: u64) -> [u8; PARMS_LEN] {
    let mut bytes = [0; PARMS_LEN];
    bytes[LINKLAYER_AT] = TC_LINKLAYER_ETHERNET;
    let narrow = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    bytes[RATE_AT..RATE_AT + 4].copy_from_slice(&narrow.to_ne_bytes());
    let limit = bytes_per_s * LATENCY_MS / 1000 + u64::from(BURST_LEN);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    bytes[LIMIT_AT..LIMIT_AT + 4].copy_from_slice(&limit.to_ne_bytes());
    bytes
}

/// `struct tcmsg` for the root queue.
pub(super) fn header(index: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_beyond_32_bits_are_clamped_where_a_wide_field_follows() {
        let bytes = parameters(10_000_000_000);
        assert_eq!(u32_at(&bytes, RATE_AT), Some(u32::MAX));
        assert_eq!(u32_at(&parameters(500_000_000), RATE_AT), Some(500_000_000));
        assert_eq!(u32_at(&parameters(500_000_000), LIMIT_AT), Some(10_000_000 + BURST_LEN));
    }
}
