//! Properties of an interface from the kernel: its kind, and whether a queue limits its rate.
//!
//! Virtual and shaped interfaces claim speeds that they do not have, and two of them with different limits
//! must not share a profile. The two netlink requests (rtnetlink(7)) need no privilege, and describe the
//! network namespace of this process, unlike files of another namespace's /sys.

use nmad_engine::profile::hash::fnv1a;
use nmad_netlink::{Message, Socket, find_attribute, u16_at, u32_at, u64_at};

/// `struct ifinfomsg` and `struct tcmsg`: attributes begin behind them.
const LINK_LEN: usize = 16;
const QUEUE_LEN: usize = 20;
const NLM_F_DUMP: i32 = 0x300;
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
/// Offset of the rate in `struct tc_tbf_qopt`, in bytes per second.
const TBF_RATE_AT: usize = 8;
/// Queues that do not limit the rate.
const FREE: [&str; 8] = ["noqueue", "noop", "pfifo", "pfifo_fast", "bfifo", "fq", "fq_codel", "mq"];

/// Frames that an interface gets at once by default.
const FRAMES: u32 = 64;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) mtu: u32,
    /// Frames that it gets at once, if less than the default.
    pub(super) frames: Option<u32>,
    /// `veth`, `bond`, `loopback`; empty for hardware.
    pub(super) kind: String,
    /// Description of its limit; empty without one.
    pub(super) limit: String,
}

/// Returns the interface of this name; `None` if it does not exist or the kernel does not describe it.
pub(super) fn link(name: &str) -> Option<Link> {
    let mut socket = Socket::open().ok()?;
    let asked = Message::new(RTM_GETLINK, 0).put(&[0; LINK_LEN]).text(IFLA_IFNAME, name);
    let mut link = parse(socket.ask(asked).ok()?.first()?)?;
    let mut queue = [0; QUEUE_LEN];
    queue[4..8].copy_from_slice(&link.index.to_ne_bytes());
    // The kernel lists the queues of all interfaces.
    let queues = socket.ask(Message::new(RTM_GETQDISC, NLM_F_DUMP).put(&queue)).unwrap_or_default();
    let root = queues.iter().find(|body| is_root_of(body, link.index));
    link.limit = root.map(|body| describe(body.get(QUEUE_LEN..).unwrap_or_default())).unwrap_or_default();
    Some(link)
}

fn parse(body: &[u8]) -> Option<Link> {
    let attributes = body.get(LINK_LEN..)?;
    let named =
        find_attribute(attributes, IFLA_LINKINFO).and_then(|info| find_attribute(info, IFLA_INFO_KIND));
    let kind = match named {
        Some(kind) => word(kind),
        None if u16_at(body, 2)? == ARPHRD_LOOPBACK => "loopback".into(),
        None => String::new(),
    };
    let value = |kind| find_attribute(attributes, kind).and_then(|value| u32_at(value, 0));
    let mtu = value(IFLA_MTU).unwrap_or_default();
    let frames = value(IFLA_GSO_MAX_SEGS).filter(|&frames| frames < FRAMES);
    Some(Link { index: u32_at(body, 4)?, mtu, frames, kind, limit: String::new() })
}

/// Converts a C string.
fn word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(bytes)).into_owned()
}

fn is_root_of(body: &[u8], index: u32) -> bool {
    u32_at(body, 4) == Some(index) && u32_at(body, 12) == Some(TC_H_ROOT)
}

/// Describes a queue.
fn describe(attributes: &[u8]) -> String {
    let kind = word(find_attribute(attributes, TCA_KIND).unwrap_or_default());
    let options = find_attribute(attributes, TCA_OPTIONS).unwrap_or_default();
    match kind.as_str() {
        kind if FREE.contains(&kind) => String::new(),
        "tbf" => match tbf_rate(options) {
            Some(rate) => format!("limited to {} Mbit/s", rate as f64 * 8.0 / 1e6),
            None => kind,
        },
        // A queue of any other kind behaves the same with the same options.
        _ => format!("{kind} {:016x}", fnv1a(options)),
    }
}

fn tbf_rate(options: &[u8]) -> Option<u64> {
    let wide = find_attribute(options, TCA_TBF_RATE64).and_then(|value| u64_at(value, 0));
    let narrow = || u32_at(find_attribute(options, TCA_TBF_PARMS)?, TBF_RATE_AT);
    wide.or_else(|| narrow().map(u64::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u16, value: &[u8]) -> Vec<u8> {
        Message::new(0, 0).attribute(kind, value).finish(0).split_off(16)
    }

    #[test]
    fn a_token_bucket_is_described_by_its_rate() {
        let mut parameters = vec![0; 36];
        parameters[TBF_RATE_AT..TBF_RATE_AT + 4].copy_from_slice(&350_000_000u32.to_ne_bytes());
        let narrow = [tlv(TCA_KIND, b"tbf\0"), tlv(TCA_OPTIONS, &tlv(TCA_TBF_PARMS, &parameters))].concat();
        assert_eq!(describe(&narrow), "limited to 2800 Mbit/s");
        let both = [tlv(TCA_TBF_PARMS, &parameters), tlv(TCA_TBF_RATE64, &5_000_000_000u64.to_ne_bytes())];
        let wide = [tlv(TCA_KIND, b"tbf\0"), tlv(TCA_OPTIONS, &both.concat())].concat();
        assert_eq!(describe(&wide), "limited to 40000 Mbit/s");
    }

    #[test]
    fn other_queues_are_distinguished_by_their_options() {
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
}
