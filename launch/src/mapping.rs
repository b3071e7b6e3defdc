//! The node map: ranks that share a node, as the launcher's text `(vector,(first,nodes,ranks),...)`.
//!
//! The map is under the key `PMI_process_mapping` of PMI-1. A block `(first,nodes,ranks)` gives the next
//! `ranks` ranks to each of `nodes` nodes, from number `first` on. Hydra (seen in 5.0) abbreviates: `7` is
//! `(7,1,1)`, and `[block,...]x3` is the list three times. Blocks that do not cover all ranks are repeated
//! from the first one, so `(vector,(0,2,1))` is round robin over two nodes for any number of ranks. This
//! file only handles text and knows no launcher.

use crate::LaunchError;

/// The key under which a PMI-1 launcher keeps the map.
pub const KEY: &str = "PMI_process_mapping";

/// Parses the launcher's map; returns the node number of each of `size` ranks.
///
/// # Errors
/// [`LaunchError::Mapping`] for other text, or for blocks without any rank.
pub fn parse(text: &str, size: u32) -> Result<Vec<u32>, LaunchError> {
    let fail = |why: String| LaunchError::Mapping { text: text.chars().take(200).collect(), why };
    let mut groups = groups(text).map_err(fail)?;
    // Groups without ranks are dropped, since they may be repeated billions of times.
    groups.retain(|group| group.times > 0 && group.blocks.iter().any(|block| block.count() > 0));
    if groups.is_empty() {
        return Err(fail("its blocks hold no rank".into()));
    }
    Ok(groups.iter().cycle().flat_map(Group::nodes).take(size as usize).collect())
}

/// Writes the map for ranks on these nodes, shortened by repetition.
pub fn write(nodes: &[u32]) -> String {
    let blocks = blocks(nodes);
    let text: Vec<String> =
        blocks.iter().map(|block| format!("({},{},{})", block.first, block.nodes, block.ranks)).collect();
    format!("(vector,{})", text.join(","))
}

/// Returns blocks from which [`parse`] makes these nodes: those of the shortest prefix that is repeated.
fn blocks(nodes: &[u32]) -> Vec<Block> {
    let is_repeated = |period: &usize| (*period..nodes.len()).all(|at| nodes[at] == nodes[at - period]);
    // A longer prefix is rarely repeated, and the search takes long.
    let period = (1..=nodes.len().min(4096)).find(is_repeated).unwrap_or(nodes.len());
    let mut blocks: Vec<Block> = Vec::new();
    for run in nodes[..period].chunk_by(|a, b| a == b) {
        let (first, ranks) = (run[0], run.len() as u32);
        match blocks.last_mut() {
            Some(last) if last.ranks == ranks && first == last.first + last.nodes => last.nodes += 1,
            _ => blocks.push(Block { first, nodes: 1, ranks }),
        }
    }
    // All ranks on one node are one block, however many they are.
    if let ([only], true) = (&mut blocks[..], period == 1) {
        only.ranks = nodes.len() as u32;
    }
    blocks
}

/// Blocks and their number of repetitions.
struct Group {
    blocks: Vec<Block>,
    times: u32,
}

impl Group {
    fn nodes(&self) -> impl Iterator<Item = u32> {
        (0..self.times).flat_map(|_| self.blocks.iter().flat_map(Block::nodes))
    }
}

struct Block {
    first: u32,
    nodes: u32,
    ranks: u32,
}

impl Block {
    fn count(&self) -> u64 {
        u64::from(self.nodes) * u64::from(self.ranks)
    }

    fn nodes(&self) -> impl Iterator<Item = u32> + use<> {
        let (first, ranks) = (self.first, self.ranks as usize);
        let nodes = if ranks == 0 { 0 } else { self.nodes };
        (0..nodes).flat_map(move |node| std::iter::repeat_n(first + node, ranks))
    }
}

fn groups(text: &str) -> Result<Vec<Group>, String> {
    let squeezed: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let mut rest = squeezed
        .strip_prefix("(vector")
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or("it is not of the form (vector,(first,nodes,ranks),...)")?;
    let mut groups = Vec::new();
    while !rest.is_empty() {
        rest = after_comma(rest)?;
        let group;
        (group, rest) = match rest.strip_prefix('[') {
            Some(inner) => repeated(inner)?,
            None => block(rest).map(|(block, rest)| (Group { blocks: vec![block], times: 1 }, rest))?,
        };
        groups.push(group);
    }
    Ok(groups)
}

/// Parses the rest of `[block,...]xTIMES`; also returns the text behind it.
fn repeated(mut rest: &str) -> Result<(Group, &str), String> {
    let mut blocks = Vec::new();
    loop {
        let (next, after) = block(rest)?;
        blocks.push(next);
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => {
                let after = after.strip_prefix("]x").ok_or_else(|| format!("`]x` should be at {after:?}"))?;
                let (times, after) = number(after)?;
                return Ok((Group { blocks, times }, after));
            }
        }
    }
}

/// Parses `(first,nodes,ranks)` or `node`; also returns the text behind it.
fn block(rest: &str) -> Result<(Block, &str), String> {
    let Some(inner) = rest.strip_prefix('(') else {
        let (first, rest) = number(rest)?;
        return Ok((Block { first, nodes: 1, ranks: 1 }, rest));
    };
    let (first, rest) = number(inner)?;
    let (nodes, rest) = number(after_comma(rest)?)?;
    let (ranks, rest) = number(after_comma(rest)?)?;
    let rest = rest.strip_prefix(')').ok_or_else(|| format!("a `)` should be at {rest:?}"))?;
    if first.checked_add(nodes).is_none() {
        return Err(format!("node numbers go beyond {}", u32::MAX));
    }
    Ok((Block { first, nodes, ranks }, rest))
}

fn after_comma(rest: &str) -> Result<&str, String> {
    rest.strip_prefix(',').ok_or_else(|| format!("a comma should be at {rest:?}"))
}

fn number(rest: &str) -> Result<(u32, &str), String> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    let number = digits.parse().map_err(|_| format!("a number should be at {rest:?}"))?;
    Ok((number, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_usual_maps() {
        assert_eq!(parse("(vector,(0,1,4))", 4).unwrap(), [0, 0, 0, 0]);
        assert_eq!(parse("(vector,(0,2,1))", 2).unwrap(), [0, 1]);
        assert_eq!(parse("(vector,(0,2,2))", 4).unwrap(), [0, 0, 1, 1]);
        assert_eq!(parse(" (vector, (0,1,2), (1,1,1), (5,2,1))", 5).unwrap(), [0, 0, 1, 5, 6]);
    }

    #[test]
    fn repeats_blocks_that_do_not_cover_all_ranks() {
        assert_eq!(parse("(vector,(0,2,1))", 5).unwrap(), [0, 1, 0, 1, 0]);
        assert_eq!(parse("(vector,(0,1,2),(3,1,1))", 7).unwrap(), [0, 0, 3, 0, 0, 3, 0]);
    }

    #[test]
    fn reads_the_abbreviations_of_hydra() {
        assert_eq!(parse("(vector,0)", 1).unwrap(), [0]);
        assert_eq!(parse("(vector,(0,2,1),0)", 3).unwrap(), [0, 1, 0]);
        assert_eq!(parse("(vector,0,(1,1,2),2,0)", 5).unwrap(), [0, 1, 1, 2, 0]);
        assert_eq!(parse("(vector,[(0,1,2),1]x2,0)", 7).unwrap(), [0, 0, 1, 0, 0, 1, 0]);
        assert_eq!(parse("(vector,[7]x4000000000)", 2).unwrap(), [7, 7]);
        assert_eq!(parse("(vector,[(0,9,0)]x4000000000,1)", 2).unwrap(), [1, 1]);
    }

    #[test]
    fn stops_at_the_size_of_the_job() {
        assert_eq!(parse("(vector,(0,4000000000,4000000000))", 3).unwrap(), [0, 0, 0]);
        assert_eq!(parse("(vector,(0,4000000000,0),(7,1,1))", 2).unwrap(), [7, 7]);
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "vector",
            "(vector)",
            "(vector,)",
            "(vector,(0,1))",
            "(vector,(0,1,1,1))",
            "(vector,(0,x,1))",
            "(vector,(0,-1,1))",
            "(vector,(0,1,1)",
            "(vector,(0,0,1))",
            "(vector,(4294967295,2,1))",
            "(matrix,(0,1,1))",
            "(vector,[0])",
            "(vector,[0]x)",
            "(vector,[]x2)",
            "(vector,[0]x0)",
            "(vector,[[0]x2]x2)",
            "(vector,0 1,,2)",
            "(vector,99999999999)",
        ] {
            let error = parse(text, 4).expect_err(text).to_string();
            assert!(error.contains("node map"), "{error}");
        }
    }

    #[test]
    fn maps_survive_a_round_trip_through_text() {
        for (nodes, text) in [
            (&[0, 0, 0][..], "(vector,(0,1,3))"),
            (&[0, 1, 0, 1, 0], "(vector,(0,2,1))"),
            (&[0, 1], "(vector,(0,2,1))"),
            (&[0, 0, 1, 1, 2, 2], "(vector,(0,3,2))"),
            (&[0, 0, 1, 2, 2], "(vector,(0,1,2),(1,1,1),(2,1,2))"),
            (&[1, 0, 0, 3, 1], "(vector,(1,1,1),(0,1,2),(3,1,1))"),
        ] {
            assert_eq!(write(nodes), text);
            assert_eq!(parse(text, nodes.len() as u32).unwrap(), nodes);
        }
    }
}
