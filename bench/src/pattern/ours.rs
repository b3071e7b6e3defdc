//! NewMadeleine as a contestant: once with the strategy of the session, or once for each that was named.
use super::{BenchError, Contestant, Kind, Pair, Strategies};

/// What a rank does for one sample.
pub(super) type Turn<'a> = &'a dyn Fn() -> Result<f64, BenchError>;

/// A contestant for each strategy. Both ranks switch at the beginning of a turn, when nothing is on the way.
pub(super) fn contestants<'a>(
    pair: Pair<'a>,
    strategies: &'a Strategies,
    turn: Turn<'a>,
) -> Vec<Contestant<'a>> {
    if strategies.is_empty() {
        return vec![Contestant::new("NewMadeleine", Kind::Ours, turn)];
    }
    let one = |strategy: &'a String| {
        Contestant::new(strategy, Kind::Ours, move || {
            pair.session.set_strategy(None, strategy)?;
            turn()
        })
    };
    strategies.iter().map(one).collect()
}
