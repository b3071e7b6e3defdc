//! A team: the ranks that run an algorithm, their nodes, and their caches within a node.

mod groups;

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
    /// The node of each member.
    nodes: Sequence,
    /// The cache of each member among those of its node, where it is known. Ranks know those of their own
    /// node, so they count only within a team of one node.
    caches: Option<Sequence>,
    /// Ranks of a cache on any node, known on all nodes alike: for predictions. Zero: not known.
    cache_ranks: u32,
    /// Most members on one node.
    crowd: usize,
    /// Teams with members on the same nodes that work at the same time, this one among them.
    abreast: usize,
    /// The members group by group.
    groups: OnceLock<Groups>,
    /// For each distance of two to a power, see [`Team::crossing`].
    crossing: OnceLock<Box<[[u32; 2]]>>,
    /// See [`Team::shapes`].
    shapes: OnceLock<[Team; 2]>,
    /// See [`Team::column`].
    column: OnceLock<Team>,
}

impl PartialEq for Members {
    fn eq(&self, other: &Members) -> bool {
        self.parties == other.parties
            && self.nodes == other.nodes
            && self.caches == other.caches
            && self.cache_ranks == other.cache_ranks
            && self.abreast == other.abreast
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

/// Where members are; see [`Members`].
struct Places {
    nodes: Sequence,
    caches: Option<Sequence>,
    cache_ranks: u32,
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
        let places = Places { nodes: sequence(nodes), caches, cache_ranks };
        Team::of((0..nodes.len() as u32).into(), places, me, 1)
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
        let places = Places { nodes: parties.clone(), caches: None, cache_ranks: 0 };
        (Team::of(parties, places, me, 1), first)
    }

    fn of(parties: Sequence, places: Places, me: usize, abreast: usize) -> Team {
        let Places { nodes, caches, cache_ranks } = places;
        let mut sorted: Vec<u32> = nodes.iter().collect();
        sorted.sort_unstable();
        let crowd = sorted.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(1);
        let (groups, crossing) = (OnceLock::new(), OnceLock::new());
        let (shapes, column) = (OnceLock::new(), OnceLock::new());
        let members =
            Members { parties, nodes, caches, cache_ranks, crowd, abreast, groups, crossing, shapes, column };
        Team { members: Arc::new(members), me }
    }

    fn groups(&self) -> &Groups {
        self.members.groups.get_or_init(|| {
            let Members { nodes, caches, .. } = &*self.members;
            Groups::new(caches.as_ref().filter(|_| !self.spans_nodes()).unwrap_or(nodes))
        })
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

    /// Groups of members: nodes, or caches in a team of one node.
    pub fn group_count(&self) -> usize {
        self.groups().count()
    }

    /// Most members of one group.
    pub fn largest_group(&self) -> usize {
        if self.spans_nodes() { self.crowd() } else { self.groups().largest }
    }

    /// Whether they are on more than one node.
    pub fn spans_nodes(&self) -> bool {
        self.crowd() < self.size()
    }

    /// Whether two levels differ from one: several groups, and several members in one of them.
    pub fn has_levels(&self) -> bool {
        match self.spans_nodes() {
            true => self.crowd() > 1,
            false => self.members.caches.is_some() && (2..self.size()).contains(&self.group_count()),
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
        if self.spans_nodes() { self.crossing(reach) } else { 0 }
    }

    /// The part of messages within a node that go from one cache to another, as far as it is known: all if
    /// it is not.
    pub fn across_caches(&self, reach: Option<Reach>) -> f64 {
        if self.spans_nodes() || self.members.caches.is_none() {
            return 1.0;
        }
        match reach {
            Some(reach) => self.crossing(reach) as f64 / self.largest_group() as f64,
            None => f64::from(u8::from(self.group_count() > 1)),
        }
    }

    /// The most members of one group that have their partner in another one.
    fn crossing(&self, reach: Reach) -> usize {
        let size = self.size();
        let (distance, kind) = match reach {
            Reach::Shift(distance) => (distance % size.max(1), 0),
            Reach::Flip(distance) => (distance, 1),
        };
        if !distance.is_power_of_two() {
            return if distance == 0 { 0 } else { self.largest_group() };
        }
        let rounds = size.next_power_of_two().ilog2();
        let all = self.members.crossing.get_or_init(|| {
            let both = |distance| [Reach::Shift(distance), Reach::Flip(distance)];
            (0..rounds).map(|round| both(1 << round).map(|reach| self.count_crossing(reach))).collect()
        });
        all.get(distance.ilog2() as usize).map_or(0, |counts| counts[kind] as usize)
    }

    fn count_crossing(&self, reach: Reach) -> u32 {
        let (size, groups) = (self.size(), self.groups());
        let (of, mut counts) = (groups.of.iter().collect::<Vec<u32>>(), vec![0; groups.count()]);
        for rank in 0..size {
            let partner = match reach {
                Reach::Shift(distance) => (rank + distance) % size,
                Reach::Flip(distance) => rank ^ distance,
            };
            if partner < size && of[partner] != of[rank] {
                counts[of[rank] as usize] += 1;
            }
        }
        counts.into_iter().max().unwrap_or(0)
    }

    /// A team like that of the largest group, and one like that of all leaders: the same on all ranks, to
    /// predict what two levels take.
    pub fn shapes(&self) -> &[Team; 2] {
        self.members.shapes.get_or_init(|| {
            let (ranks, groups) = (self.largest_group(), self.group_count());
            let local = match self.spans_nodes() {
                true => self.node(ranks),
                false => self.places(std::iter::repeat_n(0, ranks).collect()),
            };
            let leaders = self.places((0..groups as u32).into());
            [
                Team::of((0..ranks as u32).into(), local, 0, self.abreast_within()),
                Team::of((0..groups as u32).into(), leaders, 0, 1),
            ]
        })
    }

    /// A team like a column of a [`Grid`], likewise.
    pub fn column(&self) -> &Team {
        self.members.column.get_or_init(|| {
            let groups: Sequence = (0..self.group_count() as u32).into();
            let places = self.places(groups.clone());
            Team::of(groups, places, 0, self.largest_group())
        })
    }

    /// So many members on one node.
    fn node(&self, ranks: usize) -> Places {
        let each = self.members.cache_ranks;
        let caches = (each > 0).then(|| (0..ranks as u32).map(|rank| rank / each).collect());
        Places { nodes: std::iter::repeat_n(0, ranks).collect(), caches, cache_ranks: each }
    }

    /// Members in these groups: on these nodes, or of these caches of one node.
    fn places(&self, groups: Sequence) -> Places {
        match self.spans_nodes() {
            true => Places { nodes: groups, caches: None, cache_ranks: 0 },
            false => {
                let nodes = std::iter::repeat_n(0, groups.len() as usize).collect();
                Places { nodes, caches: Some(groups), cache_ranks: 0 }
            }
        }
    }

    /// Teams within groups that share cores: those of all caches of a node.
    fn abreast_within(&self) -> usize {
        if self.spans_nodes() { 1 } else { self.group_count() * self.abreast() }
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
            self.subset(&self.group_order(root).map(leader).collect::<Vec<_>>(), 1)
        });
        Levels { local: self.subset(&own, self.abreast_within()), leaders }
    }

    /// The teams that we are in, from the outermost level on: the leaders of all groups if we are one, then
    /// the same of our group. `root` is the first of each that it is in.
    pub fn path(&self, root: usize) -> Vec<Team> {
        if !self.has_levels() {
            debug_assert_eq!(root, 0);
            return vec![self.clone()];
        }
        let Levels { local, leaders } = self.levels(root);
        leaders.into_iter().chain(local.path(0)).collect()
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
        Grid { local: row, column: self.subset(&column, self.largest_group()) }
    }

    /// The last members of all groups; none unless we are one.
    pub fn lasts(&self) -> Option<Team> {
        let lasts = self.one_of_each(|size| size - 1);
        lasts.contains(&self.me).then(|| self.subset(&lasts, 1))
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
        let Members { nodes, caches, cache_ranks, .. } = &*self.members;
        let caches = caches.as_ref().map(of_each);
        let places = Places { nodes: of_each(nodes), caches, cache_ranks: *cache_ranks };
        Team::of(parties, places, me, abreast)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_led_by_the_root_and_its_node_comes_first() {
        for (nodes, root) in [(vec![0, 0, 1, 1, 2], 3), (vec![7, 3, 7, 3, 7], 2), (vec![1; 4], 1)] {
            let mut by_node: Vec<Vec<usize>> = Vec::new();
            for rank in std::iter::once(root).chain((0..nodes.len()).filter(|&rank| rank != root)) {
                match by_node.iter_mut().find(|node| nodes[node[0]] == nodes[rank]) {
                    Some(node) => node.push(rank),
                    None => by_node.push(vec![rank]),
                }
            }
            assert_eq!(by_node.len(), Team::new(&nodes, 0).group_count());
            for me in 0..nodes.len() {
                let levels = Team::new(&nodes, root).seen_from(me).levels(root);
                let own = by_node.iter().find(|node| node.contains(&me)).expect("a node has it");
                let party =
                    |team: &Team| (0..team.size()).map(|r| team.party(r) as usize).collect::<Vec<_>>();
                assert_eq!(&party(&levels.local), own);
                let leaders: Vec<usize> = by_node.iter().map(|node| node[0]).collect();
                assert_eq!(levels.leaders.map(|team| party(&team)), (own[0] == me).then_some(leaders));
            }
        }
    }

    #[test]
    fn a_grid_has_a_row_for_each_node_and_the_last_members_of_all_nodes_are_a_team() {
        for nodes in [[0, 0, 1, 1, 2, 2], [7, 3, 9, 7, 3, 9], [1, 2, 2, 1, 5, 5]] {
            let team = Team::new(&nodes, 0);
            assert!(team.is_grid());
            let rows: Vec<Vec<usize>> = team.groups_from(0).collect();
            for (me, place) in rows.iter().flat_map(|row| row.iter().zip(0..)) {
                let (Grid { local, column }, lasts) = {
                    let team = team.seen_from(*me);
                    (team.grid(), team.lasts())
                };
                let members =
                    |team: &Team| (0..team.size()).map(|r| team.party(r) as usize).collect::<Vec<_>>();
                assert!(rows.contains(&members(&local)) && members(&local)[local.me()] == *me);
                let expected: Vec<usize> = rows.iter().map(|row| row[place]).collect();
                assert_eq!((members(&column), column.abreast()), (expected.clone(), 2));
                assert_eq!(lasts.map(|team| members(&team)), (place == 1).then_some(expected));
            }
        }
        assert!(
            ![vec![0, 0, 1], vec![0, 0], vec![0, 1, 2]].iter().any(|nodes| Team::new(nodes, 0).is_grid())
        );
    }

    #[test]
    fn within_a_node_caches_are_groups() {
        let caches = [0, 0, 1, 1, 0, 0, 1, 1];
        let team = Team::with_caches(&[0, 0, 0, 0, 1, 1, 1, 1], (Some(&caches), 2), 5);
        assert_eq!((team.group_count(), team.across_caches(None)), (2, 1.0), "nodes come first");
        let shape = &team.shapes()[0];
        assert_eq!((shape.group_count(), shape.has_levels()), (2, true), "as on our node");
        let local = team.levels(5).local;
        assert_eq!((local.group_count(), local.largest_group(), local.has_levels()), (2, 2, true));
        assert!(!local.spans_nodes() && local.is_grid());
        let [within, among] = local.shapes();
        assert_eq!([within, among].map(Team::size), [2, 2]);
        assert_eq!([within, among].map(|team| team.across_caches(None)), [0.0, 1.0]);
        assert_eq!((within.abreast(), local.column().abreast()), (2, 2), "they share the cores of the node");
        let deepest = local.levels(1).local;
        assert!(!deepest.has_levels() && (0..2).all(|rank| deepest.party(rank) >= 4));
        let shift = |distance| local.across_caches(Some(Reach::Shift(distance)));
        assert_eq!([1, 2].map(shift), [0.5, 1.0]);
        let unknown = Team::new(&[0; 4], 0);
        assert_eq!((unknown.across_caches(None), unknown.has_levels()), (1.0, false));
        let one = Team::with_caches(&[0; 4], (Some(&[3; 4]), 4), 0);
        assert_eq!((one.across_caches(None), one.has_levels()), (0.0, false));
    }

    #[test]
    fn partners_on_other_nodes_are_counted() {
        let block = Team::new(&[0, 0, 0, 0, 1, 1, 1, 1], 0);
        assert_eq!([1, 2, 4].map(|d| block.leaving(Reach::Flip(d))), [0, 0, 4]);
        assert_eq!([1, 2, 3, 4, 8].map(|d| block.leaving(Reach::Shift(d))), [1, 2, 4, 4, 0]);
        let turns = Team::new(&[0, 1, 0, 1], 0);
        assert_eq!([1, 2].map(|d| turns.leaving(Reach::Flip(d))), [2, 0]);
        assert_eq!(Team::new(&[0; 4], 0).leaving(Reach::Shift(1)), 0);
    }
}
