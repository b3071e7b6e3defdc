//! The links of a fabric, and the way of a message over them.
//!
//! A link carries one message at a time, in the order in which their first bytes come (FIFO), each for as
//! long as its bytes take; the first byte goes on at once (cut-through). So messages that share a link share
//! its bandwidth, one after the other instead of packet by packet: a job ends at the same time, single
//! messages end earlier or later. Links that a switch may choose among are one link of their bandwidth
//! together, as with ideal adaptive routing:
//!
//! - fat tree: the links of a leaf upwards, and those downwards;
//! - dragonfly: the links from one group to another. Within a group nothing is shared but the cards (a
//!   Slingshot switch has 16 ports for hosts and 31 for its group). A message goes straight to its group, or
//!   by the less loaded one of two others if that is twice as soon (UGAL; Kim, Dally, Scott, Abts 2008).

use super::fabric::{Fabric, Rail, Shape, ps};

/// One link, or several that are chosen among.
#[derive(Debug, Clone, Copy)]
struct Link {
    mb: u64,
    /// Time between two messages, in picoseconds.
    gap: u64,
    /// When it is free.
    idle: u64,
}

/// Links of a message's way, and what the switches between them add, in picoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Way {
    links: [u32; 4],
    count: u8,
    pub(crate) switches_ps: u64,
}

impl Way {
    /// The link number `place` of the way.
    pub fn link(&self, place: usize) -> Option<u32> {
        (place < usize::from(self.count)).then(|| self.links[place])
    }

    fn push(&mut self, link: usize) {
        self.links[usize::from(self.count)] = link as u32;
        self.count += 1;
    }
}

/// All links of a machine.
#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
    rails: Vec<Railway>,
    hosts: usize,
}

/// The links of one rail: those of the cards out and in, then those between switches.
#[derive(Debug)]
struct Railway {
    rail: &'static Rail,
    base: usize,
    /// Groups of a dragonfly.
    groups: usize,
}

impl Links {
    /// The links between so many hosts.
    pub fn new(fabric: &'static Fabric, hosts: usize) -> Links {
        let (mut links, mut rails) = (Vec::new(), Vec::new());
        for rail in fabric.rails {
            let base = links.len();
            let mut groups = 0;
            let mb = rail.card.bandwidth / 1_000_000;
            let card = Link { mb, gap: rail.card.gap_ns * 1000, idle: 0 };
            links.resize(links.len() + 2 * hosts, card);
            match rail.shape {
                Shape::Switch => {}
                Shape::FatTree { leaf, taper } => {
                    let trunk = Link { mb: mb * leaf as u64 / taper, gap: 0, idle: 0 };
                    links.resize(links.len() + 2 * hosts.div_ceil(leaf), trunk);
                }
                Shape::Dragonfly { group, global_percent } => {
                    groups = hosts.div_ceil(group);
                    let mb = mb * group as u64 * global_percent / 100 / (groups as u64 - 1).max(1);
                    links.resize(links.len() + groups * groups, Link { mb, gap: 0, idle: 0 });
                }
            }
            rails.push(Railway { rail, base, groups });
        }
        Links { links, rails, hosts }
    }

    /// The way from one host to another at a time; `number` is the message's.
    pub fn way(&self, rail: usize, (from, to): (usize, usize), number: u32, now: u64) -> Way {
        let own = &self.rails[rail];
        let Railway { rail, base, .. } = *own;
        let mut way = Way::default();
        way.push(base + from);
        let beyond = base + 2 * self.hosts;
        let mut further = 0;
        match rail.shape {
            Shape::Switch => {}
            Shape::FatTree { leaf, .. } => {
                let (up, down) = (from / leaf, to / leaf);
                if up != down {
                    way.push(beyond + 2 * up);
                    way.push(beyond + 2 * down + 1);
                    further = 2;
                }
            }
            Shape::Dragonfly { group, .. } => {
                let (here, there) = (from / group, to / group);
                if here != there {
                    let middles = [8, 16].map(|turn| spread(number, turn) % own.groups);
                    further = self.between_groups(&mut way, own, [here, there], (&middles, now));
                }
            }
        }
        way.push(base + self.hosts + to);
        way.switches_ps = further * rail.switch_ns * 1000;
        way
    }

    /// Adds the links between two groups; returns the switches on the way beyond the first.
    fn between_groups(
        &self,
        way: &mut Way,
        own: &Railway,
        [here, there]: [usize; 2],
        (middles, now): (&[usize], u64),
    ) -> u64 {
        let link = |a: usize, b: usize| own.base + 2 * self.hosts + a * own.groups + b;
        let load = |a: usize, b: usize| self.links[link(a, b)].idle.saturating_sub(now);
        let others = middles.iter().filter(|middle| **middle != here && **middle != there);
        let best = others.map(|&middle| (load(here, middle).max(load(middle, there)), middle)).min();
        match best {
            Some((least, middle)) if 2 * least < load(here, there) => {
                way.push(link(here, middle));
                way.push(link(middle, there));
                4
            }
            _ => {
                way.push(link(here, there));
                2
            }
        }
    }

    /// The first byte comes to a link at `now`: when it goes on, and when the last one has.
    pub fn carry(&mut self, link: u32, now: u64, len: u64) -> (u64, u64) {
        let link = &mut self.links[link as usize];
        let start = link.idle.max(now);
        link.idle = start + ps(len, link.mb) + link.gap;
        (start, start + ps(len, link.mb))
    }
}

/// A number that looks like chance and is the same in each run.
fn spread(number: u32, turn: u32) -> usize {
    number.wrapping_mul(0x9e37_79b9).rotate_left(turn) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::FABRICS;

    #[test]
    fn messages_share_the_bandwidth_of_a_tapered_trunk() {
        // From every host of a leaf to another leaf: the trunk carries half as much as the cards.
        let mut links = Links::new(&FABRICS[0], 64);
        let ends = (0..32).map(|host| {
            let way = links.way(0, (host, 32 + host), 0, 0);
            let (head, _) = links.carry(way.link(0).expect("a card"), 0, 1 << 20);
            links.carry(way.link(1).expect("a trunk"), head, 1 << 20).1
        });
        let last = ends.max().expect("there are messages");
        let alone = ps(1 << 20, 24_500);
        assert!((last as f64 / alone as f64 - 2.0).abs() < 0.01, "{last} {alone}");
        assert_eq!(links.way(0, (3, 4), 0, 0).link(2), None, "within a leaf: two cards");
    }

    #[test]
    fn a_loaded_link_between_groups_is_passed_by() {
        let mut links = Links::new(&FABRICS[1], 256);
        let straight = links.way(0, (0, 255), 7, 0);
        assert_eq!((straight.link(2).is_some(), straight.link(3)), (true, None));
        links.carry(straight.link(1).expect("between groups"), 0, 1 << 30);
        assert!((0..20).any(|number| links.way(0, (0, 255), number, 0).link(3).is_some()));
    }
}
