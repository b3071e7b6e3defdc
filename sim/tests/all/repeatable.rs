//! Seed and commit are a run: bit for bit the same events, whatever ran before.

use nmad_sim::{Options, run_seed};

#[test]
fn the_same_seed_gives_the_same_events() {
    let options = Options::default();
    for seed in [1, 7, 42, 137] {
        let first = run_seed(seed, &options);
        run_seed(seed + 1, &options);
        let second = run_seed(seed, &options);
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn explaining_does_not_change_the_run() {
    let explain = Options { explain: true, ..Options::default() };
    for seed in [3, 11] {
        let (told, silent) = (run_seed(seed, &explain), run_seed(seed, &Options::default()));
        assert_eq!((told.hash, told.events), (silent.hash, silent.events), "seed {seed}");
        assert!(!told.lines.is_empty() && silent.lines.is_empty());
    }
}

#[test]
fn different_seeds_give_different_events() {
    let options = Options::default();
    assert_ne!(run_seed(1, &options).hash, run_seed(2, &options).hash);
}
