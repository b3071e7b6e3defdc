//! What the kernel knows of an interface: its kind, and whether something slows down what it sends.
//!
//! Virtual and shaped interfaces claim speeds that they do not have; two of them with different limits must
//! not share a profile. Two netlink requests (rtnetlink(7)) that anybody may make, and that tell of the
//! network namespace of this process, as files of another one's /sys would not.

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

const HEADER_LEN: usize = 16;
/// `struct ifinfomsg` and `struct tcmsg`: attributes begin behind them.
const LINK_LEN: usize = 16;
const QUEUE_LEN: usize = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_GETQDISC: u16 = 38;
const ARPHRD_LOOPBACK: u16 = 772;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INFO_KIND: u16 = 1;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
/// Where `struct tc_tbf_qopt` has its rate, in bytes per second.
const TBF_RATE_AT: usize = 8;
/// Queues that send as fast as the interface does.
const FREE: [&str; 8] = ["noqueue", "noop", "pfifo", "pfifo_fast", "bfifo", "fq", "fq_codel", "mq"];

/// Frames that interfaces are handed at once, if nobody has said otherwise.
const FRAMES: u32 = 64;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) mtu: u32,
    /// Frames that it is handed at once, if that is less than usual.
    pub(super) frames: Option<u32>,
    /// `veth`, `bond`, `loopback`; empty for hardware.
    pub(super) kind: String,
    /// What limits it, in words; empty if nothing does.
    pub(super) limit: String,
}

/// The interface of this name; none if there is none or the kernel does not tell.
pub(super) fn link(name: &str) -> Option<Link> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0 of this family is rtnetlink.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).ok()?;
    let asked = request(RTM_GETLINK, 0, &[&[0; LINK_LEN][..], &text(IFLA_IFNAME, name)].concat());
    let mut link = ask(&socket, &asked, |kind, body| (kind == RTM_NEWLINK).then(|| parse(body))?)?;
    let mut queue = [0; QUEUE_LEN];
    queue[4..8].copy_from_slice(&link.index.to_ne_bytes());
    // The kernel lists the queues of all interfaces.
    let asked = request(RTM_GETQDISC, NLM_F_DUMP, &queue);
    let limit = ask(&socket, &asked, |_, body| {
        is_root_of(body, link.index).then(|| describe(body.get(QUEUE_LEN..).unwrap_or_default()))
    });
    link.limit = limit.unwrap_or_default();
    Some(link)
}

/// Sends a request and takes the first answer that `wanted` wants.
fn ask<R>(socket: &OwnedFd, request: &[u8], wanted: impl Fn(u16, &[u8]) -> Option<R>) -> Option<R> {
    send(socket, request, SendFlags::empty()).ok()?;
    // The kernel fills at most 32 KiB at a time (netlink(7)), and the answer is ready when `send` returns:
    // nothing here waits. The rest of one answer does not look like the next answer.
    let mut buffer = vec![0; 32 << 10];
    loop {
        let (len, _) = recv(socket, &mut buffer[..], RecvFlags::empty()).ok()?;
        for (kind, body) in messages(buffer.get(..len)?) {
            if kind == NLMSG_ERROR || kind == NLMSG_DONE {
                return None;
            }
            if let Some(answer) = wanted(kind, body) {
                return Some(answer);
            }
        }
    }
}

fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    let len = (HEADER_LEN + body.len()) as u32;
    bytes[..4].copy_from_slice(&len.to_ne_bytes());
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn parse(body: &[u8]) -> Option<Link> {
    let attributes = body.get(LINK_LEN..)?;
    let named = attribute(attributes, IFLA_LINKINFO).and_then(|info| attribute(info, IFLA_INFO_KIND));
    let kind = match named {
        Some(kind) => word(kind),
        None if u16::from_ne_bytes(number(body, 2)?) == ARPHRD_LOOPBACK => "loopback".into(),
        None => String::new(),
    };
    let value = |kind| attribute(attributes, kind).and_then(|value| number(value, 0)).map(u32::from_ne_bytes);
    let mtu = value(IFLA_MTU).unwrap_or_default();
    let frames = value(IFLA_GSO_MAX_SEGS).filter(|&frames| frames < FRAMES);
    Some(Link { index: u32::from_ne_bytes(number(body, 4)?), mtu, frames, kind, limit: String::new() })
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    let mut bytes = ((value.len() + 5) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value.as_bytes());
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A C string.
fn word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(bytes)).into_owned()
}

/// Kind and body of each message.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = number::<4>(bytes, 0).map(u32::from_ne_bytes)? as usize;
        let whole = bytes.get(..len).filter(|whole| whole.len() >= HEADER_LEN)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes(number(whole, 4)?), &whole[HEADER_LEN..]))
    })
}

fn is_root_of(body: &[u8], index: u32) -> bool {
    let at = |at| number(body, at).map(u32::from_ne_bytes);
    at(4) == Some(index) && at(12) == Some(TC_H_ROOT)
}

/// A queue in words.
fn describe(attributes: &[u8]) -> String {
    let kind = word(attribute(attributes, TCA_KIND).unwrap_or_default());
    let options = attribute(attributes, TCA_OPTIONS).unwrap_or_default();
    match kind.as_str() {
        kind if FREE.contains(&kind) => String::new(),
        "tbf" => match tbf_rate(options) {
            Some(rate) => format!("limited to {} Mbit/s", rate as f64 * 8.0 / 1e6),
            None => kind,
        },
        // Whatever it does, it does the same when it is set the same.
        _ => format!("{kind} {:016x}", super::hash::hash(options)),
    }
}

fn tbf_rate(options: &[u8]) -> Option<u64> {
    let wide = attribute(options, TCA_TBF_RATE64).and_then(|value| number(value, 0)).map(u64::from_ne_bytes);
    let narrow = || number(attribute(options, TCA_TBF_PARMS)?, TBF_RATE_AT).map(u32::from_ne_bytes);
    wide.or_else(|| narrow().map(u64::from))
}

fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = attributes;
    loop {
        let len = u16::from_ne_bytes(number(rest, 0)?) as usize;
        let value = rest.get(4..len)?;
        // The two upper bits say "nested" and "big-endian" and are not part of the number.
        if u16::from_ne_bytes(number(rest, 2)?) & 0x3fff == kind {
            return Some(value);
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
}

fn number<const LEN: usize>(bytes: &[u8], at: usize) -> Option<[u8; LEN]> {
    bytes.get(at..at + LEN)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_token_bucket_is_told_by_its_rate() {
        let mut parameters = vec![0; 36];
        parameters[TBF_RATE_AT..TBF_RATE_AT + 4].copy_from_slice(&350_000_000u32.to_ne_bytes());
        let narrow = [tlv(TCA_KIND, b"tbf\0"), tlv(TCA_OPTIONS, &tlv(TCA_TBF_PARMS, &parameters))].concat();
        assert_eq!(describe(&narrow), "limited to 2800 Mbit/s");
        let both = [tlv(TCA_TBF_PARMS, &parameters), tlv(TCA_TBF_RATE64, &5_000_000_000u64.to_ne_bytes())];
        let wide = [tlv(TCA_KIND, b"tbf\0"), tlv(TCA_OPTIONS, &both.concat())].concat();
        assert_eq!(describe(&wide), "limited to 40000 Mbit/s");
    }

    #[test]
    fn other_queues_are_told_apart_by_how_they_are_set() {
        let netem = |option: u8| [tlv(TCA_KIND, b"netem\0"), tlv(TCA_OPTIONS, &[option])].concat();
        assert_ne!(describe(&netem(1)), describe(&netem(2)));
        assert_eq!(describe(&tlv(TCA_KIND, b"fq_codel\0")), "");
    }

    #[test]
    fn an_interface_that_gets_single_frames_is_another_one() {
        let answer = |frames: u32| {
            let name = tlv(IFLA_LINKINFO, &tlv(IFLA_INFO_KIND, b"veth\0"));
            [vec![0; LINK_LEN], name, tlv(IFLA_GSO_MAX_SEGS, &frames.to_ne_bytes())].concat()
        };
        assert_eq!(parse(&answer(65_535)).expect("an interface").frames, None);
        assert_eq!(parse(&answer(1)).expect("an interface").frames, Some(1));
    }

    #[test]
    fn the_loopback_interface_is_known_and_others_are_not() {
        let lo = link("lo").expect("every namespace has it");
        assert_eq!((lo.index, lo.kind.as_str()), (1, "loopback"));
        assert!(lo.mtu > 0);
        for name in ["no/such", "", "a name that is much longer than any interface's may be"] {
            assert_eq!(link(name), None, "{name}");
        }
    }

    #[test]
    fn cut_off_answers_end_the_reading() {
        let bytes = request(RTM_GETQDISC, NLM_F_DUMP, &[0; QUEUE_LEN]);
        assert!((0..bytes.len()).all(|len| messages(&bytes[..len]).count() == 0));
        assert_eq!(attribute(&[8, 0, 1, 0, 1], 1), None);
        assert_eq!(attribute(&[0, 0, 1, 0], 1), None);
    }
}
