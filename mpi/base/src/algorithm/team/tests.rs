//! Groups of teams, and who has a partner elsewhere.

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
            let party = |team: &Team| (0..team.size()).map(|r| team.party(r) as usize).collect::<Vec<_>>();
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
            let members = |team: &Team| (0..team.size()).map(|r| team.party(r) as usize).collect::<Vec<_>>();
            assert!(rows.contains(&members(&local)) && members(&local)[local.me()] == *me);
            let expected: Vec<usize> = rows.iter().map(|row| row[place]).collect();
            assert_eq!((members(&column), column.abreast()), (expected.clone(), 2));
            assert_eq!(lasts.map(|team| members(&team)), (place == 1).then_some(expected));
        }
    }
    assert!(![vec![0, 0, 1], vec![0, 0], vec![0, 1, 2]].iter().any(|nodes| Team::new(nodes, 0).is_grid()));
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

#[test]
fn nodes_with_one_member_each_are_grouped_by_their_switches() {
    let nodes: Vec<u32> = (0..10).map(|rank| rank / 2).collect();
    let team = Team::new(&nodes, 4).behind(&[7, 7, 7, 7, 5, 5, 7, 7, 5, 5]);
    assert_eq!((team.group_count(), team.has_levels()), (5, true), "nodes come first");
    let leaders = team.levels(4).leaders.expect("we lead");
    assert_eq!((leaders.group_count(), leaders.largest_group(), leaders.has_levels()), (2, 3, true));
    assert!(!leaders.is_grid() && leaders.leaving(Reach::Shift(1)) == 1);
    let parties = |team: &Team| (0..team.size()).map(|rank| team.party(rank)).collect::<Vec<_>>();
    let path: Vec<Vec<u32>> = team.path(4, true).iter().map(parties).collect();
    assert_eq!(path, [vec![4, 0], vec![4, 8], vec![4, 5]]);
    assert_eq!(team.path(4, false).len(), 2);
    let shape = &team.shapes()[1];
    assert_eq!((shape.group_count(), shape.largest_group()), (2, 3));
    // Of the six ranks of the first switch two go on to the other one, over links that three nodes share.
    assert_eq!(team.uplinks(Some(Reach::Shift(2))), 4.0 / 3.0);
    assert_eq!(team.uplinks(Some(Reach::Shift(1))), 2.0 / 3.0);
    assert_eq!(team.uplinks_of_tree(9), 4.0 / 3.0);
    assert_eq!(Team::new(&nodes, 0).behind(&[3; 10]).uplinks(None), 0.0, "one switch");
}
