//! Loss: a rule of nftables (nft(8), nf_tables in the kernel) that drops what a device receives by chance.
//!
//! Queues that lose by themselves (netem) are missing in many kernels, and policers lose bursts. The rule
//! sits at the device's ingress, so that every protocol loses alike, also those without IP.

use nmad_netlink::{Message, Socket};
use rustix::net::netlink;
use std::io;

const TABLE: &str = "nmad-loss";
const SUBSYSTEM: u16 = 10 << 8;
const NEW_TABLE: u16 = SUBSYSTEM;
const DELETE_TABLE: u16 = SUBSYSTEM | 2;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const NEW_RULE: u16 = SUBSYSTEM | 6;

const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_DEVICE: u16 = 3;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const VALUE: u16 = 1;
const VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;

/// Registers of the rule's little machine: the verdict, and one for numbers.
const VERDICT_REGISTER: u32 = 0;
const REGISTER: u32 = 1;
const RANDOM: u32 = 1;
const EQUAL: u32 = 0;
const DROP: u32 = 0;
/// `NFPROTO_NETDEV`: hooks of devices.
const FAMILY: u8 = 5;

/// Drops one in `one_in` frames that `device` receives; none if that is zero.
pub(crate) fn lose(socket: &mut Socket, device: &str, one_in: u32) -> io::Result<()> {
    let table = |kind| message(kind, libc::NLM_F_CREATE).text(TABLE_NAME, &format!("{TABLE}-{device}"));
    match order_all(socket, vec![table(DELETE_TABLE)]) {
        Err(error) if error.raw_os_error() != Some(libc::ENOENT) => return Err(error),
        _ if one_in == 0 => return Ok(()),
        _ => {}
    }
    let name = format!("{TABLE}-{device}");
    let chain = message(NEW_CHAIN, libc::NLM_F_CREATE)
        .text(CHAIN_TABLE, &name)
        .text(CHAIN_NAME, "ingress")
        .nest(CHAIN_HOOK, |hook| {
            hook.number(HOOK_NUMBER, 0).number(HOOK_PRIORITY, 0).text(HOOK_DEVICE, device)
        })
        .text(CHAIN_TYPE, "filter");
    let rule = message(NEW_RULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND)
        .text(RULE_TABLE, &name)
        .text(RULE_CHAIN, "ingress")
        .nest(RULE_EXPRESSIONS, |list| {
            let list = expression(list, "numgen", |numgen| {
                numgen.number(1, REGISTER).number(2, one_in).number(3, RANDOM)
            });
            let list = expression(list, "cmp", |cmp| {
                let zero = |value: Message| value.attribute(VALUE, &[0; 4]);
                cmp.number(1, REGISTER).number(2, EQUAL).nest(3, zero)
            });
            expression(list, "immediate", |verdict| {
                let drop = |data: Message| data.nest(VERDICT, |verdict| verdict.number(VERDICT_CODE, DROP));
                verdict.number(1, VERDICT_REGISTER).nest(2, drop)
            })
        });
    order_all(socket, vec![table(NEW_TABLE), chain, rule])
}

/// A socket for [`lose`], of the calling thread's network namespace.
pub(crate) fn open_filter() -> io::Result<Socket> {
    Socket::of(Some(netlink::NETFILTER))
}

/// Does what all of these order, or nothing.
fn order_all(socket: &mut Socket, messages: Vec<Message>) -> io::Result<()> {
    let edge = |kind: i32| Message::unanswered(kind as u16).put(&header(0, SUBSYSTEM >> 8));
    socket.send_all(edge(libc::NFNL_MSG_BATCH_BEGIN), messages, edge(libc::NFNL_MSG_BATCH_END))
}

fn message(kind: u16, flags: i32) -> Message {
    Message::new(kind, flags).put(&header(FAMILY, 0))
}

fn expression(list: Message, name: &str, data: impl FnOnce(Message) -> Message) -> Message {
    list.nest(LIST_ELEMENT, |element| element.text(EXPRESSION_NAME, name).nest(EXPRESSION_DATA, data))
}

/// `struct nfgenmsg`.
fn header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}
