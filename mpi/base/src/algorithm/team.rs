//! A team: the ranks that run an algorithm, their nodes, the caches of a node, and the switches of nodes.

mod groups;
#[cfg(test)]
mod tests;

use crate::sequence::Sequence;
use groups::{Groups, at};
use std::sync::{Arc, OnceLock};

/// Ranks that run an algorithm together, in the order in which non-commutative operators take them. Cheap
/// to clone: its members are stored once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    members: Arc<Members>,
    me: usize,
}

/// The ranks of a team, the same seen from each of them.
#[derive(Debug)]
struct Members {
    /// The party of each member; see [`super::transport::Transport`].
    parties: Sequence,
    places: Places,
    /// Most members on one node.
    crowd: usize,
    /// Teams with members on the same nodes that work at the same time, this one among them.
    abreast: usize,
    /// The members group by group.
    groups: OnceLock<Groups>,
    /// The members switch by switch.
    behind: OnceLock<Groups>,
    /// See [`Team::shapes`].
    shapes: OnceLock<[Team; 2]>,
    /// See [`Team::column`].
    column: OnceLock<Team>,
}

impl PartialEq for Members {
    fn eq(&self, other: &Members) -> bool {
        self.parties == other.parties && self.places == other.places && self.abreast == other.abreast
    }
}

impl Eq for Members {}

/// Which partner each rank has in a round of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The rank so many further, around the end.
    Shift(usize),
    /// The rank that differs in this bit.
    Flip(usize),
}

/// The groups of a team.
pub struct Levels {
    /// The members of our group; the first is its leader.
    pub local: Team,
    /// The leaders of all groups; none unless we are one.
    pub leaders: Option<Team>,
}

/// The members as a grid, with a row for each group.
pub struct Grid {
    /// Our row: the members of our group.
    pub local: Team,
    /// Our column: the members of all groups that have our place there.
    pub column: Team,
}

/// Where members are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Places {
    /// The node of each member.
    nodes: Sequence,
    /// The cache of each member among those of its node, where it is known. Ranks know those of their own
    /// node, so they count only within a team of one node.
    caches: Option<Sequence>,
    /// Ranks of a cache on any node, known on all nodes alike: for predictions. Zero: not known.
    cache_ranks: u32,
    /// The switch of each member's node, where they are known and there are several.
    switches: Option<Sequence>,
    /// Nodes that share the links of a switch to others, for each team that uses them at the same time.
    uplinks: u32,
}

impl Places {
    fn on(nodes: Sequence) -> Places {
        Places { nodes, caches: None, cache_ranks: 0, switches: None, uplinks: 1 }
    }
}

impl Team {
    /// The local group of a communicator, whose members are on these nodes. `me` is our rank.
    pub fn new(nodes: &[u32], me: usize) -> Team {
        Team::with_caches(nodes, (None, 0), me)
    }

    /// The same, with the cache of each member among those of its node, where it is known: those of other
    /// nodes than ours do not count. And how many ranks of any node share a cache, which predictions
    /// assume, the same on all ranks; zero: not known.
    pub fn with_caches(nodes: &[u32], caches: (Option<&[u32]>, u32), me: usize) -> Team {
        let sequence = |numbers: &[u32]| numbers.iter().copied().collect();
        let (caches, cache_ranks) = (caches.0.map(sequence), caches.1);
        let places = Places { caches, cache_ranks, ..Places::on(sequence(nodes)) };
        Team::of((0..nodes.len() as u32).into(), places, me, 1)
    }

    /// Returns this team with the switch of each member's node; all ranks must give the same switches.
    #[must_use]
    pub fn behind(self, switches: &[u32]) -> Team {
        let Members { parties, places, abreast, .. } = &*self.members;
        let mut both: Vec<(u32, u32)> = switches.iter().copied().zip(places.nodes.iter()).collect();
        both.sort_unstable();
        both.dedup();
        let uplinks = both.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max().unwrap_or(1) as u32;
        let switches = Some(switches.iter().copied().collect());
        Team::of(parties.clone(), Places { switches, uplinks, ..places.clone() }, self.me, *abreast)
    }

    /// The same team, seen from another member.
    #[must_use]
    pub fn seen_from(&self, me: usize) -> Team {
        Team { members: self.members.clone(), me }
    }

    /// All members of both groups of an intercommunicator, and how many the first has. Both groups see the
    /// same order: `is_first` says that the local one is the first.
    pub fn of_both(&self, remote: usize, is_first: bool) -> (Team, usize) {
        let size = self.size() as u32;
        let (ours, theirs) = (0..size, size..size + remote as u32);
        let (parties, me, first): (Sequence, usize, usize) = match is_first {
            true => (ours.chain(theirs).collect(), self.me, self.size()),
            false => (theirs.chain(ours).collect(), remote + self.me, remote),
        };
        // For messages in rounds: nobody asks on which nodes they are.
        let places = Places::on(parties.clone());
        (Team::of(parties, places, me, 1), first)
    }

    fn of(parties: Sequence, mut places: Places, me: usize, abreast: usize) -> Team {
        let mut sorted: Vec<u32> = places.nodes.iter().collect();
        sorted.sort_unstable();
        let crowd = sorted.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(1);
        places.switches = places.switches.filter(|all| all.iter().any(|switch| switch != at(all, 0)));
        let (groups, behind) = (OnceLock::new(), OnceLock::new());
        let (shapes, column) = (OnceLock::new(), OnceLock::new());
        let members = Members { parties, places, crowd, abreast, groups, behind, shapes, column };
        Team { members: Arc::new(members), me }
    }

    fn groups(&self) -> &Groups {
        self.members.groups.get_or_init(|| {
            let Places { nodes, caches, switches, .. } = &self.members.places;
            let known = match (self.spans_nodes(), self.crowd()) {
                (false, _) => caches,
                (true, 1) => switches,
                (true, _) => &None,
            };
            Groups::new(known.as_ref().unwrap_or(nodes))
        })
    }

    /// Whether the switches of its nodes are known, and there are several.
    pub fn has_switches(&self) -> bool {
        self.members.places.switches.is_some()
    }

    /// Whether groups are the nodes of a switch, each with one member.
    fn is_by_switch(&self) -> bool {
        self.has_switches() && self.spans_nodes() && self.crowd() == 1
    }

    /// Members.
    #[inline]
    pub fn size(&self) -> usize {
        self.members.parties.len() as usize
    }

    /// Bytes of a block for each of them.
    pub fn blocks(&self, len: u64) -> u64 {
        len.saturating_mul(self.size() as u64)
    }

    /// Our rank among them.
    #[inline]
    pub fn me(&self) -> usize {
        self.me
    }

    /// The party that a member is.
    #[inline]
    pub fn party(&self, rank: usize) -> u32 {
        at(&self.members.parties, rank)
    }

    /// The other members.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (me, size) = (self.me, self.size());
        (0..size).filter(move |&rank| rank != me)
    }

    /// Most members on one node.
    pub fn crowd(&self) -> usize {
        self.members.crowd
    }

    /// Teams like this one that work at the same time, with members on the same nodes: they share its cores
    /// and rails.
    pub fn abreast(&self) -> usize {
        self.members.abreast
    }

    /// Groups of members: nodes; caches in a team of one node; switches, if they are known, in a team with
    /// one member on each node.
    pub fn group_count(&self) -> usize {
        self.groups().count()
    }

    /// Nodes with members.
    pub fn node_count(&self) -> usize {
        match (self.spans_nodes(), self.crowd()) {
            (false, _) => 1,
            (true, 1) => self.size(),
            (true, _) => self.group_count(),
        }
    }

    /// Most members of one group.
    pub fn largest_group(&self) -> usize {
        if self.crowd() > 1 && self.spans_nodes() { self.crowd() } else { self.groups().largest }
    }

    /// Whether they are on more than one node.
    pub fn spans_nodes(&self) -> bool {
        self.crowd() < self.size()
    }

    /// Whether two levels differ from one: several groups, and several members in one of them.
    pub fn has_levels(&self) -> bool {
        match self.spans_nodes() {
            true if self.crowd() > 1 => true,
            true => self.is_by_switch() && self.group_count() < self.size(),
            false => self.members.places.caches.is_some() && (2..self.size()).contains(&self.group_count()),
        }
    }

    /// Whether there are levels, with as many members in each group.
    pub fn is_grid(&self) -> bool {
        self.has_levels() && self.group_count() * self.largest_group() == self.size()
    }

    /// Whether the members of each group follow each other, so that groups can be combined in order.
    pub fn is_ordered_by_group(&self) -> bool {
        self.groups().members == (0..self.size() as u32).into()
    }

    /// The most members of one node that have their partner on another one.
    pub fn leaving(&self, reach: Reach) -> usize {
        match (self.spans_nodes(), self.crowd(), reach) {
            (false, ..) => 0,
            (true, 1, Reach::Shift(distance)) => usize::from(!distance.is_multiple_of(self.size())),
            (true, 1, Reach::Flip(distance)) => usize::from((1..self.size()).contains(&distance)),
            _ => self.groups().crossing(reach),
        }
    }

    /// The part of messages within a node that go from one cache to another, as far as it is known: all if
    /// it is not.
    pub fn across_caches(&self, reach: Option<Reach>) -> f64 {
        if self.spans_nodes() || self.members.places.caches.is_none() {
            return 1.0;
        }
        match reach {
            Some(reach) => self.groups().crossing(reach) as f64 / self.largest_group() as f64,
            None => f64::from(u8::from(self.group_count() > 1)),
        }
    }

    /// Messages over the links of the busiest switch to others, for each node that shares these links, if
    /// every member sends one: to the member of a distance, or to any. Zero unless there are several
    /// switches.
    pub fn uplinks(&self, reach: Option<Reach>) -> f64 {
        self.over_uplinks(|behind| match reach {
            Some(reach) => behind.crossing(reach) as f64,
            None => behind.crossing_to_any(),
        })
    }

    /// Messages over these links, as for [`Team::uplinks`], if every member sends one to each of its `arity`
    /// children in a tree.
    pub fn uplinks_of_tree(&self, arity: usize) -> f64 {
        self.over_uplinks(|behind| behind.crossing_in_tree(arity) as f64)
    }

    fn over_uplinks(&self, messages: impl FnOnce(&Groups) -> f64) -> f64 {
        let Places { switches: Some(switches), uplinks, .. } = &self.members.places else { return 0.0 };
        let messages = match self.is_by_switch() {
            true => messages(self.groups()),
            false => messages(self.members.behind.get_or_init(|| Groups::new(switches))),
        };
        messages / f64::from(*uplinks)
    }

    /// A team like that of the largest group, and one like that of all leaders: the same on all ranks, to
    /// predict what two levels take.
    pub fn shapes(&self) -> &[Team; 2] {
        self.members.shapes.get_or_init(|| {
            let (ranks, groups) = (self.largest_group(), self.group_count());
            let here = || std::iter::repeat_n(0, ranks).collect();
            let local = match (self.spans_nodes(), self.crowd()) {
                (false, _) => Places { caches: Some(here()), ..Places::on(here()) },
                (true, 1) => Places::on((0..ranks as u32).into()),
                (true, _) => self.node(ranks),
            };
            [
                Team::of((0..ranks as u32).into(), local, 0, self.abreast_within()),
                Team::of((0..groups as u32).into(), self.places(), 0, self.abreast_for(1)),
            ]
        })
    }

    /// A team like a column of a [`Grid`], likewise.
    pub fn column(&self) -> &Team {
        self.members.column.get_or_init(|| {
            let parties = (0..self.group_count() as u32).into();
            let column = Team::of(parties, self.places(), 0, self.abreast_for(self.largest_group()));
            column.sharing_uplinks(self)
        })
    }

    /// So many members on one node.
    fn node(&self, ranks: usize) -> Places {
        let each = self.members.places.cache_ranks;
        let caches = (each > 0).then(|| (0..ranks as u32).map(|rank| rank / each).collect());
        Places { caches, cache_ranks: each, ..Places::on(std::iter::repeat_n(0, ranks).collect()) }
    }

    /// One member of each group.
    fn places(&self) -> Places {
        let groups: Sequence = (0..self.group_count() as u32).into();
        if !self.spans_nodes() {
            let nodes = std::iter::repeat_n(0, groups.len() as usize).collect();
            return Places { caches: Some(groups), ..Places::on(nodes) };
        }
        let Places { switches, uplinks, .. } = &self.members.places;
        let firsts = || self.one_of_each(|_| 0).into_iter();
        let switches = switches.as_ref().map(|all| firsts().map(|rank| at(all, rank)).collect());
        Places { switches, uplinks: *uplinks, ..Places::on(groups) }
    }

    /// Teams within groups that share cores and rails: those of all caches of a node.
    fn abreast_within(&self) -> usize {
        match self.spans_nodes() {
            true => self.abreast_for(1),
            false => self.group_count() * self.abreast(),
        }
    }

    /// Teams with a member of each group that work at the same time, where a group has `teams` of them: those
    /// of a switch are on different nodes.
    fn abreast_for(&self, teams: usize) -> usize {
        if self.is_by_switch() { self.abreast() } else { teams }
    }

    /// Returns this team as a column of `all`: the links of a switch serve all columns at the same time.
    fn sharing_uplinks(&self, all: &Team) -> Team {
        if !all.is_by_switch() {
            return self.clone();
        }
        let Members { parties, places, abreast, .. } = &*self.members;
        let uplinks = (places.uplinks / all.largest_group() as u32).max(1);
        Team::of(parties.clone(), Places { uplinks, ..places.clone() }, self.me, *abreast)
    }

    /// The groups in the order in which a collective from or to `root` takes them: its own first.
    fn group_order(&self, root: usize) -> impl Iterator<Item = usize> {
        let groups = self.groups();
        let first = groups.of(root);
        std::iter::once(first).chain((0..groups.count()).filter(move |&number| number != first))
    }

    /// The members of a group; `root` is the first of its own.
    fn led(&self, group: usize, root: usize) -> impl Iterator<Item = usize> {
        let groups = self.groups();
        let own = groups.of(root) == group;
        let members = groups.group(group);
        own.then_some(root).into_iter().chain(members.filter(move |&member| !own || member != root))
    }

    /// The team by groups. `root` leads its group, and its group comes first.
    pub fn levels(&self, root: usize) -> Levels {
        let groups = self.groups();
        let own: Vec<usize> = self.led(groups.of(self.me), root).collect();
        let leaders = (own[0] == self.me).then(|| {
            let leader = |group| self.led(group, root).next().unwrap_or(root);
            self.subset(&self.group_order(root).map(leader).collect::<Vec<_>>(), self.abreast_for(1))
        });
        Levels { local: self.subset(&own, self.abreast_within()), leaders }
    }

    /// The teams that we are in, from the outermost level on: the leaders of all groups if we are one, by
    /// switches if `by_switch`, then the same of our group. `root` is the first of each that it is in.
    pub fn path(&self, root: usize, by_switch: bool) -> Vec<Team> {
        if !self.is_divided(by_switch) {
            let turned: Vec<usize> = (root..self.size()).chain(0..root).collect();
            return vec![if root == 0 { self.clone() } else { self.subset(&turned, self.abreast()) }];
        }
        let Levels { local, leaders } = self.levels(root);
        let leaders = leaders.map(|leaders| leaders.path(0, by_switch)).unwrap_or_default();
        leaders.into_iter().chain(local.path(0, by_switch)).collect()
    }

    /// Whether a tree of levels has several in this team; `by_switch`: switches are levels.
    pub fn is_divided(&self, by_switch: bool) -> bool {
        self.has_levels() && (by_switch || !self.is_by_switch())
    }

    /// The members of each group, in the order of [`Team::levels`].
    pub fn groups_from(&self, root: usize) -> impl Iterator<Item = Vec<usize>> {
        self.group_order(root).map(move |group| self.led(group, root).collect())
    }

    /// The team as a grid; see [`Team::is_grid`].
    pub fn grid(&self) -> Grid {
        let local: Vec<usize> = self.groups().group(self.group_place()).collect();
        let place = local.iter().position(|&member| member == self.me).unwrap_or(0);
        let column = self.one_of_each(|_| place);
        let row = self.subset(&local, self.abreast_within());
        let column = self.subset(&column, self.abreast_for(self.largest_group()));
        Grid { local: row, column: column.sharing_uplinks(self) }
    }

    /// The last members of all groups; none unless we are one.
    pub fn lasts(&self) -> Option<Team> {
        let lasts = self.one_of_each(|size| size - 1);
        lasts.contains(&self.me).then(|| self.subset(&lasts, self.abreast_for(1)))
    }

    /// A member of each group, by the place there that `choose` returns for the number of members.
    fn one_of_each(&self, choose: impl Fn(usize) -> usize) -> Vec<usize> {
        let groups = self.groups();
        (0..groups.count()).map(|number| groups.member(number, choose(groups.size(number)))).collect()
    }

    /// The whole team, group by group, as [`Team::levels`] of rank 0 has it, and where each group begins;
    /// the end of the last one comes last.
    pub fn by_group(&self) -> (&Sequence, &Sequence) {
        let groups = self.groups();
        (&groups.members, &groups.starts)
    }

    /// Our group's number in that order.
    pub fn group_place(&self) -> usize {
        self.group_of(self.me)
    }

    /// The number of a member's group.
    pub fn group_of(&self, rank: usize) -> usize {
        self.groups().of(rank)
    }

    /// Some members, of which we must be one.
    fn subset(&self, members: &[usize], abreast: usize) -> Team {
        let me = members.iter().position(|&rank| rank == self.me).expect("we are among them");
        let parties = members.iter().map(|&rank| self.party(rank)).collect();
        let of_each = |all: &Sequence| members.iter().map(|&rank| at(all, rank)).collect();
        let Places { nodes, caches, switches, .. } = &self.members.places;
        let [caches, switches] = [caches, switches].map(|known| known.as_ref().map(of_each));
        let places = Places { nodes: of_each(nodes), caches, switches, ..self.members.places };
        Team::of(parties, places, me, abreast)
    }
}
