//! A team: the ranks that run an algorithm, and their nodes.

/// Ranks that run an algorithm together, in the order in which non-commutative operators take them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// The party of each member; see [`super::transport::Transport`].
    parties: Box<[u32]>,
    /// The node of each member.
    nodes: Box<[u32]>,
    me: usize,
    /// Most members on one node.
    crowd: usize,
}

/// The nodes of a team.
pub struct Levels {
    /// The members on our node; the first is its leader.
    pub local: Team,
    /// The leaders of all nodes; none unless we are one.
    pub leaders: Option<Team>,
    /// Members of the whole team, node by node, the leader of each first.
    pub by_node: Vec<Vec<usize>>,
}

impl Team {
    /// The local group of a communicator, whose members are on these nodes. `me` is our rank.
    pub fn new(nodes: &[u32], me: usize) -> Team {
        let parties = (0..nodes.len() as u32).collect();
        Team::of(parties, nodes.into(), me)
    }

    /// All members of both groups of an intercommunicator, and how many the first has. Both groups see the
    /// same order: `is_first` says that the local one is the first.
    pub fn of_both(&self, remote: usize, is_first: bool) -> (Team, usize) {
        let size = self.size() as u32;
        let (ours, theirs) = (0..size, size..size + remote as u32);
        let (parties, me, first): (Box<[u32]>, usize, usize) = match is_first {
            true => (ours.chain(theirs).collect(), self.me, self.size()),
            false => (theirs.chain(ours).collect(), remote + self.me, remote),
        };
        // For messages in rounds: nobody asks on which nodes they are.
        (Team::of(parties.clone(), parties, me), first)
    }

    fn of(parties: Box<[u32]>, nodes: Box<[u32]>, me: usize) -> Team {
        let mut sorted = nodes.to_vec();
        sorted.sort_unstable();
        let crowd = sorted.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(1);
        Team { parties, nodes, me, crowd }
    }

    /// Members.
    #[inline]
    pub fn size(&self) -> usize {
        self.parties.len()
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
        self.parties[rank]
    }

    /// The other members.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (me, size) = (self.me, self.size());
        (0..size).filter(move |&rank| rank != me)
    }

    /// Most members on one node.
    pub fn crowd(&self) -> usize {
        self.crowd
    }

    /// Whether they are on more than one node.
    pub fn spans_nodes(&self) -> bool {
        self.crowd < self.size()
    }

    /// Whether two levels differ from one: several nodes, and several members on one of them.
    pub fn has_levels(&self) -> bool {
        self.spans_nodes() && self.crowd > 1
    }

    /// Whether the members of each node follow each other, so that nodes can be combined in order.
    pub fn is_ordered_by_node(&self) -> bool {
        let runs = self.nodes.chunk_by(|a, b| a == b).count();
        let mut distinct = self.nodes.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        runs == distinct.len()
    }

    /// The team by nodes. `root` leads its node, and its node comes first.
    pub fn levels(&self, root: usize) -> Levels {
        let mut by_node: Vec<Vec<usize>> = Vec::new();
        let rooted = std::iter::once(root).chain((0..self.size()).filter(|&rank| rank != root));
        for rank in rooted {
            match by_node.iter_mut().find(|node| self.nodes[node[0]] == self.nodes[rank]) {
                Some(node) => node.push(rank),
                None => by_node.push(vec![rank]),
            }
        }
        let own = by_node.iter().find(|node| node.contains(&self.me)).cloned().unwrap_or_default();
        let leaders: Vec<usize> = by_node.iter().map(|node| node[0]).collect();
        let leaders = leaders.contains(&self.me).then(|| self.subset(&leaders));
        Levels { local: self.subset(&own), leaders, by_node }
    }

    /// Some members, of which we must be one.
    fn subset(&self, members: &[usize]) -> Team {
        let me = members.iter().position(|&rank| rank == self.me).expect("we are among them");
        let parties = members.iter().map(|&rank| self.parties[rank]).collect();
        Team::of(parties, members.iter().map(|&rank| self.nodes[rank]).collect(), me)
    }
}
