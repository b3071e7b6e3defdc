//! Costs as figures, on which all ranks agree.

use super::{Cost, Curve, Memory, OVERHEAD, SIZES, Uplinks};

/// Figures of a cost.
pub const FIGURES: usize = 3 * SIZES.len() + 12;

/// What a process knows of its node; see [`Cost`].
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// Cores that its ranks share.
    pub cores: usize,
    /// Nodes that share them, this one among them.
    pub nodes: usize,
    /// For which an eager message to another node keeps a core.
    pub post: Option<Curve>,
    /// Lengths of messages that receivers copy by themselves.
    pub reads: (u64, u64),
    /// Its memory.
    pub memory: Memory,
    /// Bandwidth of the nodes of a switch over that of its links to others; zero: not known.
    pub taper: f64,
}

impl Cost {
    /// The figures that ranks agree on: each takes the largest that any rank names. Zero: not known here.
    /// `near` and `far` are curves, each with the time of a further short message.
    pub fn figures(
        [near, far]: [Option<(Curve, f64)>; 2],
        across_ns: f64,
        node: Node,
        alone: (u64, f64),
    ) -> [f64; FIGURES] {
        let Node { cores, nodes, post, reads, memory, taper } = node;
        let mut figures = [0.0; FIGURES];
        let memory = [memory.ns_per_byte, memory.cached as f64];
        figures[FIGURES - 9..FIGURES - 3].copy_from_slice(&[
            taper,
            alone.0 as f64,
            alone.1,
            memory[0],
            memory[1],
            across_ns,
        ]);
        for (place, known) in [near, far].into_iter().enumerate() {
            let Some((Curve(ns), gap)) = known else { continue };
            figures[place * SIZES.len()..][..SIZES.len()].copy_from_slice(&ns);
            figures[3 * SIZES.len() + place] = gap;
        }
        if let Some(Curve(ns)) = post {
            figures[2 * SIZES.len()..][..SIZES.len()].copy_from_slice(&ns);
        }
        // The fewest cores count, and the most nodes that share them.
        figures[3 * SIZES.len() + 2] = nodes as f64;
        figures[FIGURES - 3] = 1.0 / cores.max(1) as f64;
        // And the widest range.
        if reads.0 < reads.1 {
            figures[FIGURES - 2..].copy_from_slice(&[1.0 / reads.0.max(1) as f64, reads.1 as f64]);
        }
        figures
    }

    /// The figures that all ranks agreed on; nominal ones where no rank had any.
    pub fn from_figures(figures: &[f64; FIGURES]) -> Cost {
        let nominal = Cost::default();
        let curve = |place: usize| {
            let mut ns = [0.0; SIZES.len()];
            ns.copy_from_slice(&figures[place * SIZES.len()..][..SIZES.len()]);
            ns.iter().all(|&ns| ns > 0.0).then_some(Curve(ns))
        };
        let cores = (1.0 / figures[FIGURES - 3]).round().max(1.0) as usize;
        let reads = match figures[FIGURES - 1] as u64 {
            0 => nominal.reads,
            below => ((1.0 / figures[FIGURES - 2]).round() as u64, below),
        };
        let (near, far) = (curve(0).unwrap_or(nominal.near), curve(1).unwrap_or(nominal.far));
        let gap = |place: usize, curve: &Curve| match figures[3 * SIZES.len() + place] {
            0.0 => OVERHEAD * curve.0[0],
            // A message that others wait for takes a further one's time, too.
            gap => gap.min(curve.0[0]),
        };
        let gaps = [gap(0, &near), gap(1, &far)];
        let &[.., taper, below, alone, memory_ns, cached, across_ns, _, _, _] = figures;
        Cost {
            near,
            across_ns,
            far,
            gaps,
            send_gap: gaps[1],
            alone: (below as u64, alone),
            post: curve(2),
            cores,
            nodes: (figures[3 * SIZES.len() + 2] as usize).max(1),
            reads,
            line_ns: nominal.line_ns,
            memory: Memory { ns_per_byte: memory_ns, cached: cached as u64 },
            uplinks: Uplinks { taper: taper.max(1.0), ..nominal.uplinks },
        }
    }
}
