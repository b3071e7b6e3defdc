//! NewMadeleine as a contestant: once with the strategy of the session, or once for each that was named.
use super::{BenchError, Contestant, Kind, Pair, Strategies};

/// What a rank does for one sample; the buffer is its own.
pub(super) type Turn<'a> = &'a dyn Fn(&mut Vec<u8>) -> Result<f64, BenchError>;

/// A contestant for each strategy. Both ranks switch at the beginning of a turn, when nothing is on the way.
pub(super) fn contestants<'a>(
    pair: Pair<'a>,
    strategies: &'a Strategies,
    turn: Turn<'a>,
) -> Vec<Contestant<'a>> {
    let mut buffer = Vec::new();
    if strategies.is_empty() {
        return vec![Contestant::new("NewMadeleine", Kind::Ours, move || turn(&mut buffer))];
    }
    let one = |strategy: &'a String| {
        let mut buffer = Vec::new();
        Contestant::new(strategy, Kind::Ours, move || {
            pair.session.set_strategy(None, strategy)?;
            turn(&mut buffer)
        })
    };
    strategies.iter().map(one).collect()
}
