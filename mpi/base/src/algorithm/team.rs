//! A team: the ranks that run an algorithm, and their nodes.

use crate::sequence::Sequence;
use std::sync::{Arc, OnceLock};

/// Ranks that run an algorithm together, in the order in which non-commutative operators take them. Cheap to
/// clone: its members are stored once.
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
    /// Most members on one node.
    crowd: usize,
    /// Teams with members on the same nodes that work at the same time, this one among them.
    abreast: usize,
    /// The members node by node.
    groups: OnceLock<Groups>,
    /// For each distance of two to a power, see [`Team::leaving`].
    leaving: OnceLock<Box<[[u32; 2]]>>,
    /// See [`Team::shapes`].
    shapes: OnceLock<[Team; 2]>,
    /// See [`Team::column`].
    column: OnceLock<Team>,
}

impl PartialEq for Members {
    fn eq(&self, other: &Members) -> bool {
        self.parties == other.parties && self.nodes == other.nodes && self.abreast == other.abreast
    }
}

impl Eq for Members {}

/// The members of a team, node by node in the order of their first members.
#[derive(Debug)]
struct Groups {
    members: Sequence,
    /// Where each group begins in `members`, and the end of the last.
    starts: Sequence,
    /// The group of each member.
    of: Sequence,
}

impl Groups {
    fn new(nodes: &Sequence) -> Groups {
        let nodes: Vec<u32> = nodes.iter().collect();
        let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
        order.sort_by_key(|&member| nodes[member as usize]);
        let mut groups: Vec<&[u32]> =
            order.chunk_by(|&a, &b| nodes[a as usize] == nodes[b as usize]).collect();
        groups.sort_by_key(|group| group[0]);
        let (mut of, mut starts) = (vec![0; nodes.len()], vec![0]);
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|&member| of[member as usize] = number as u32);
            starts.push(starts[number] + group.len() as u32);
        }
        let members = groups.iter().copied().flatten().copied().collect();
        Groups { members, starts: starts.into_iter().collect(), of: of.into_iter().collect() }
    }

    fn count(&self) -> usize {
        self.starts.len() as usize - 1
    }

    /// How many members a group has.
    fn size(&self, number: usize) -> usize {
        (at(&self.starts, number + 1) - at(&self.starts, number)) as usize
    }

    /// A member of a group, by its place there.
    fn member(&self, number: usize, place: usize) -> usize {
        at(&self.members, at(&self.starts, number) as usize + place) as usize
    }

    fn group(&self, number: usize) -> impl Iterator<Item = usize> + Clone {
        (0..self.size(number)).map(move |place| self.member(number, place))
    }

    /// The group of a member.
    fn of(&self, member: usize) -> usize {
        at(&self.of, member) as usize
    }
}

/// A number that is there.
fn at(sequence: &Sequence, place: usize) -> u32 {
    sequence.get(place as u32).expect("ranks and nodes of a team are below its size")
}

/// Which partner each rank has in a round of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The rank so many further, around the end.
    Shift(usize),
    /// The rank that differs in this bit.
    Flip(usize),
}

/// The nodes of a team.
pub struct Levels {
    /// The members on our node; the first is its leader.
    pub local: Team,
    /// The leaders of all nodes; none unless we are one.
    pub leaders: Option<Team>,
}

/// The members as a grid, with a row for each node.
pub struct Grid {
    /// Our row: the members on our node.
    pub local: Team,
    /// Our column: the members of all nodes that have our place there.
    pub column: Team,
}

impl Team {
    /// The local group of a communicator, whose members are on these nodes. `me` is our rank.
    pub fn new(nodes: &[u32], me: usize) -> Team {
        let parties = (0..nodes.len() as u32).into();
        Team::of(parties, nodes.iter().copied().collect(), me, 1)
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
        (Team::of(parties.clone(), parties, me, 1), first)
    }

    fn of(parties: Sequence, nodes: Sequence, me: usize, abreast: usize) -> Team {
        let mut sorted: Vec<u32> = nodes.iter().collect();
        sorted.sort_unstable();
        let crowd = sorted.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(1);
        let (groups, leaving) = (OnceLock::new(), OnceLock::new());
        let (shapes, column) = (OnceLock::new(), OnceLock::new());
        Team {
            members: Arc::new(Members { parties, nodes, crowd, abreast, groups, leaving, shapes, column }),
            me,
        }
    }

    fn groups(&self) -> &Groups {
        self.members.groups.get_or_init(|| Groups::new(&self.members.nodes))
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

    /// Nodes that members are on.
    pub fn node_count(&self) -> usize {
        self.groups().count()
    }

    /// Whether they are on more than one node.
    pub fn spans_nodes(&self) -> bool {
        self.crowd() < self.size()
    }

    /// Whether two levels differ from one: several nodes, and several members on one of them.
    pub fn has_levels(&self) -> bool {
        self.spans_nodes() && self.crowd() > 1
    }

    /// Whether there are levels, with as many members on each node.
    pub fn is_grid(&self) -> bool {
        self.has_levels() && self.node_count() * self.crowd() == self.size()
    }

    /// Whether the members of each node follow each other, so that nodes can be combined in order.
    pub fn is_ordered_by_node(&self) -> bool {
        self.groups().members == (0..self.size() as u32).into()
    }

    /// The most members of one node that have their partner on another one.
    pub fn leaving(&self, reach: Reach) -> usize {
        let size = self.size();
        if !self.spans_nodes() {
            return 0;
        }
        let (distance, kind) = match reach {
            Reach::Shift(distance) => (distance % size.max(1), 0),
            Reach::Flip(distance) => (distance, 1),
        };
        if !distance.is_power_of_two() {
            return if distance == 0 { 0 } else { self.crowd() };
        }
        let rounds = size.next_power_of_two().ilog2();
        let all = self.members.leaving.get_or_init(|| {
            let both = |distance| [Reach::Shift(distance), Reach::Flip(distance)];
            (0..rounds).map(|round| both(1 << round).map(|reach| self.count_leaving(reach))).collect()
        });
        all.get(distance.ilog2() as usize).map_or(0, |counts| counts[kind] as usize)
    }

    fn count_leaving(&self, reach: Reach) -> u32 {
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

    /// A team like that of the fullest node, and one like that of all leaders: the same on all ranks, to
    /// predict what two levels take.
    pub fn shapes(&self) -> &[Team; 2] {
        self.members
            .shapes
            .get_or_init(|| [Team::new(&vec![0; self.crowd()], 0), Team::new(&self.numbers_of_nodes(), 0)])
    }

    /// A team like a column of a [`Grid`], likewise.
    pub fn column(&self) -> &Team {
        self.members.column.get_or_init(|| {
            let nodes: Sequence = (0..self.node_count() as u32).into();
            Team::of(nodes.clone(), nodes, 0, self.crowd())
        })
    }

    fn numbers_of_nodes(&self) -> Vec<u32> {
        (0..self.node_count() as u32).collect()
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

    /// The team by nodes. `root` leads its node, and its node comes first.
    pub fn levels(&self, root: usize) -> Levels {
        let groups = self.groups();
        let own: Vec<usize> = self.led(groups.of(self.me), root).collect();
        let leaders = (own[0] == self.me).then(|| {
            let leader = |group| self.led(group, root).next().unwrap_or(root);
            self.subset(&self.group_order(root).map(leader).collect::<Vec<_>>(), 1)
        });
        Levels { local: self.subset(&own, 1), leaders }
    }

    /// The members of each node, in the order of [`Team::levels`].
    pub fn nodes_from(&self, root: usize) -> impl Iterator<Item = Vec<usize>> {
        self.group_order(root).map(move |group| self.led(group, root).collect())
    }

    /// The team as a grid; see [`Team::is_grid`].
    pub fn grid(&self) -> Grid {
        let local: Vec<usize> = self.groups().group(self.node_place()).collect();
        let place = local.iter().position(|&member| member == self.me).unwrap_or(0);
        let column = self.one_of_each(|_| place);
        Grid { local: self.subset(&local, 1), column: self.subset(&column, self.crowd()) }
    }

    /// The last members of all nodes; none unless we are one.
    pub fn lasts(&self) -> Option<Team> {
        let lasts = self.one_of_each(|size| size - 1);
        lasts.contains(&self.me).then(|| self.subset(&lasts, 1))
    }

    /// A member of each node, by the place there that `choose` returns for the number of members.
    fn one_of_each(&self, choose: impl Fn(usize) -> usize) -> Vec<usize> {
        let groups = self.groups();
        (0..groups.count()).map(|number| groups.member(number, choose(groups.size(number)))).collect()
    }

    /// The whole team, node by node, as [`Team::levels`] of rank 0 has it, and where each node begins; the
    /// end of the last one comes last.
    pub fn by_node(&self) -> (&Sequence, &Sequence) {
        let groups = self.groups();
        (&groups.members, &groups.starts)
    }

    /// Our node's number in that order.
    pub fn node_place(&self) -> usize {
        self.groups().of(self.me)
    }

    /// Some members, of which we must be one.
    fn subset(&self, members: &[usize], abreast: usize) -> Team {
        let me = members.iter().position(|&rank| rank == self.me).expect("we are among them");
        let parties = members.iter().map(|&rank| self.party(rank)).collect();
        let nodes = members.iter().map(|&rank| at(&self.members.nodes, rank)).collect();
        Team::of(parties, nodes, me, abreast)
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
            assert_eq!(by_node.len(), Team::new(&nodes, 0).node_count());
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
            let rows: Vec<Vec<usize>> = team.nodes_from(0).collect();
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
    fn partners_on_other_nodes_are_counted() {
        let block = Team::new(&[0, 0, 0, 0, 1, 1, 1, 1], 0);
        assert_eq!([1, 2, 4].map(|d| block.leaving(Reach::Flip(d))), [0, 0, 4]);
        assert_eq!([1, 2, 3, 4, 8].map(|d| block.leaving(Reach::Shift(d))), [1, 2, 4, 4, 0]);
        let turns = Team::new(&[0, 1, 0, 1], 0);
        assert_eq!([1, 2].map(|d| turns.leaving(Reach::Flip(d))), [2, 0]);
        assert_eq!(Team::new(&[0; 4], 0).leaving(Reach::Shift(1)), 0);
    }
}
