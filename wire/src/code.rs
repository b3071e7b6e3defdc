//! The first byte of each frame, which tells what it is.

pub(crate) const EAGER: u8 = 1;
pub(crate) const RTS: u8 = 2;
pub(crate) const CTS: u8 = 3;
pub(crate) const RTR: u8 = 4;
pub(crate) const FIN: u8 = 5;
pub(crate) const ACK: u8 = 6;
pub(crate) const CREDIT: u8 = 7;
pub(crate) const REPLAY: u8 = 8;
pub(crate) const LINK_DOWN: u8 = 9;
pub(crate) const WITHDRAW: u8 = 10;
pub(crate) const WITHDRAWN: u8 = 11;
pub(crate) const BYE: u8 = 12;
pub(crate) const PART: u8 = 13;
pub(crate) const ASK: u8 = 14;
pub(crate) const SEEN: u8 = 15;
pub(crate) const RECLAIM: u8 = 16;
