//! Values of `--map-by` and `--bind-to`.

use crate::binding::{Level, Target};

/// Value of `--map-by`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapBy {
    /// Machines get ranks in turns.
    pub in_turns: bool,
    /// Number of ranks on each machine.
    pub per_host: Option<u32>,
    /// Level over whose parts the ranks of a machine are spread.
    pub spread: Option<Level>,
    /// Number of cores for each rank.
    pub width: Option<u32>,
}

/// Value of `--bind-to`: the part, and its number.
pub type BindTo = (Target, u32);

/// Parses Open MPI's `slot`, `node`, `socket:PE=2`, `ppr:4:node`.
///
/// # Errors
/// The accepted words.
pub fn map_by(text: &str) -> Result<MapBy, String> {
    let lower = text.to_ascii_lowercase();
    let fail = || {
        let known =
            "slot, node, core, socket, numa, l3 or ppr:N:node, and `:PE=N` behind it for N cores a rank";
        Err(format!("it should be {known}"))
    };
    let mut words = lower.split(':');
    let mut map = MapBy::default();
    match words.next() {
        Some("slot" | "core" | "hwthread") => {}
        Some("node" | "host") => map.in_turns = true,
        Some("ppr") => match (words.next().and_then(|count| count.parse().ok()), words.next()) {
            (Some(count @ 1..), Some("node" | "host")) => map.per_host = Some(count),
            _ => return fail(),
        },
        Some(part) => match level(part) {
            Some(level) => map.spread = Some(level),
            None => return fail(),
        },
        None => return fail(),
    }
    for word in words.flat_map(|word| word.split(',')) {
        match word.strip_prefix("pe=").map(str::parse) {
            Some(Ok(width @ 1..)) => map.width = Some(width),
            // Ranks may always outnumber slots.
            None if word == "oversubscribe" || word == "nooversubscribe" => {}
            _ => return fail(),
        }
    }
    Ok(map)
}

/// Parses `core`, `core:2`, `none`.
///
/// # Errors
/// The accepted words.
pub fn bind_to(text: &str) -> Result<BindTo, String> {
    let lower = text.to_ascii_lowercase();
    let (part, width) = lower.split_once(':').unwrap_or((&lower, "1"));
    let width = width.parse().ok().filter(|&width: &u32| width > 0);
    let to = match part {
        "none" => Some(Target::Nothing),
        part => level(part).map(Target::Part),
    };
    let fail =
        || "it should be core, hwthread, l3, socket, numa or none, and maybe `:N` behind it for N of them";
    to.zip(width).ok_or_else(|| fail().into())
}

fn level(name: &str) -> Option<Level> {
    Some(match name {
        "hwthread" | "hwt" | "threads" => Level::HwThread,
        "core" => Level::Core,
        "l3" | "l3cache" => Level::L3,
        "socket" | "package" => Level::Socket,
        "numa" => Level::Numa,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_other_launchers_are_understood() {
        let map = MapBy::default();
        for (text, expected) in [
            ("slot", map),
            ("node", MapBy { in_turns: true, ..map }),
            ("ppr:4:node", MapBy { per_host: Some(4), ..map }),
            ("Socket:PE=2", MapBy { spread: Some(Level::Socket), width: Some(2), ..map }),
            ("core:oversubscribe", map),
        ] {
            assert_eq!(map_by(text), Ok(expected), "{text}");
        }
        for text in ["", "ppr", "ppr:x:node", "ppr:2:socket", "board", "core:PE=0", "core:x"] {
            assert!(map_by(text).expect_err(text).contains("ppr:N:node"), "{text}");
        }
    }

    #[test]
    fn bindings_of_other_launchers_are_understood() {
        assert_eq!(bind_to("core"), Ok((Target::Part(Level::Core), 1)));
        assert_eq!(bind_to("core:2"), Ok((Target::Part(Level::Core), 2)));
        assert_eq!(bind_to("l3cache"), Ok((Target::Part(Level::L3), 1)));
        assert_eq!(bind_to("NONE"), Ok((Target::Nothing, 1)));
        for text in ["", "core:0", "core:x", "board"] {
            assert!(bind_to(text).expect_err(text).contains("hwthread"), "{text}");
        }
    }
}
