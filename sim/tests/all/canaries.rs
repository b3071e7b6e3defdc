//! The oracles see: each way of being broken on purpose is caught within a few seeds, by the oracle whose
//! business it is.

use nmad_sim::{Canary, Deaths, Options, run_seed};

/// What the oracle says, of the first seed of sixty that it objects to.
fn caught(canary: Canary) -> String {
    // Only what is bad already can be left unchecked.
    let lossy = canary == Canary::Unchecked;
    let files = canary.is_of_files();
    let deaths = if canary.is_of_deaths() { Deaths::Drawn } else { Deaths::None };
    let options =
        Options { canary: Some(canary), no_faults: !lossy, lossy, files, deaths, ..Options::default() };
    let violation = (1..=60).find_map(|seed| run_seed(seed, &options).violation);
    violation.unwrap_or_else(|| panic!("nobody caught {}", canary.name())).text
}

#[test]
fn a_lost_message_is_caught() {
    caught(Canary::Loses);
}

#[test]
fn a_starving_rail_is_caught() {
    let text = caught(Canary::Starves);
    assert!(text.contains("rails idle"), "{text}");
}

#[test]
fn an_overfull_packet_is_caught() {
    let text = caught(Canary::Overfills);
    assert!(text.contains("the rail takes"), "{text}");
}

#[test]
fn a_neglected_message_is_caught() {
    let text = caught(Canary::Neglects);
    assert!(text.contains("rails idle"), "{text}");
}

#[test]
fn a_changed_byte_is_caught() {
    let text = caught(Canary::Corrupts);
    assert!(text.contains("there is 0x"), "{text}");
}

#[test]
fn an_update_that_is_done_twice_is_caught() {
    let text = caught(Canary::Doubles);
    assert!(text.contains("done 2 times"), "{text}");
}

#[test]
fn damage_that_no_driver_finds_is_caught() {
    caught(Canary::Unchecked);
}

#[test]
fn contexts_that_are_not_closed_after_a_death_are_caught() {
    let text = caught(Canary::Forgets);
    assert!(text.contains("not over after") && text.contains("<-any"), "{text}");
}

#[test]
fn an_owner_that_overlooks_what_waits_is_caught() {
    let text = caught(Canary::Overlooks);
    assert!(text.contains("overwritten") || text.contains("there are"), "{text}");
}

#[test]
fn an_owner_that_a_synchronisation_skips_is_caught() {
    let text = caught(Canary::Skips);
    assert!(text.contains("file"), "{text}");
}

#[test]
fn pages_that_are_not_forgotten_are_caught() {
    let text = caught(Canary::Remembers);
    assert!(text.contains("overwritten"), "{text}");
}

#[test]
fn an_atomic_access_in_two_parts_is_caught() {
    let text = caught(Canary::Splits);
    assert!(text.contains("in atomic mode"), "{text}");
}

#[test]
fn an_owner_that_writes_nothing_after_a_death_is_caught() {
    let text = caught(Canary::Abandons);
    assert!(text.contains("overwritten") || text.contains("has written up to"), "{text}");
}

#[test]
fn a_loss_that_nobody_is_told_of_is_caught() {
    let text = caught(Canary::Hushes);
    assert!(text.contains("was not told why"), "{text}");
}
