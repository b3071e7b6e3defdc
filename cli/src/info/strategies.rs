//! The strategies that can be chosen, and those of the plug-in that is configured.

use newmadeleine::Options;
use nmad_bench::table::Table;
use serde::Serialize;

/// A strategy.
#[derive(Serialize)]
pub(super) struct Strategy {
    /// The name that selects it.
    name: String,
    /// A description of its decisions; empty for a strategy of a plug-in.
    what: &'static str,
    in_force: bool,
    /// The plug-in that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    plug_in: Option<Origin>,
}

/// A plug-in.
#[derive(Serialize)]
struct Origin {
    file: String,
    /// As it says; may be empty.
    version: String,
}

/// Returns all strategies; those of a plug-in that cannot be loaded are left out, and a problem tells why.
pub(super) fn of(options: &Options) -> Vec<Strategy> {
    let chosen = options.strategy.as_deref().unwrap_or(Options::DEFAULT_STRATEGY);
    let own = |name: &str| Strategy {
        name: name.into(),
        what: what(name),
        in_force: name == chosen,
        plug_in: None,
    };
    let mut all: Vec<Strategy> = options.strategies.names().map(own).collect();
    let Ok(Some(plug_in)) = options.plug_in() else { return all };
    let meant = plug_in.chosen(chosen);
    all.extend(plug_in.names().map(|name| Strategy {
        name: format!("{}:{name}", plug_in.given),
        what: "",
        in_force: meant == Some(name),
        plug_in: Some(Origin { file: plug_in.path.display().to_string(), version: plug_in.version.clone() }),
    }));
    all
}

/// A strategy in a few words.
fn what(name: &str) -> &'static str {
    match name {
        "fifo" => "one message, one packet, first rail: the baseline",
        "aggregate" => "what waits for a peer leaves in one packet, on the first rail",
        "greedy" => "whole messages on whichever rail is idle",
        "aggregate_fastest" => "short ones gathered on the fastest rail, long ones on whichever is idle",
        "iso_split" => "long messages in equal parts over all rails",
        "dichotomy" => "long messages by P3's dichotomy, for equal predicted finish of two rails",
        "weighted" => "long messages by P4's weighted bandwidths, as rails become idle",
        "split" => "long messages so that all rails are predicted to finish together",
        "auto" => "as split; short ones gathered on the rail that delivers them first",
        "ratio_split" => "long messages in parts as the bandwidths of the rails",
        _ => "",
    }
}

/// Returns the table for a terminal.
pub(super) fn table(all: &[Strategy]) -> Table {
    let mut table = Table::new("strategies", &["name", "what it does"]).words([1]);
    for Strategy { name, what, in_force, plug_in } in all {
        let mark = if *in_force { " (in force)" } else { "" };
        let what = match plug_in {
            None => (*what).to_string(),
            Some(Origin { file, version }) if version.is_empty() => format!("of the plug-in {file}"),
            Some(Origin { file, version }) => format!("of the plug-in {file}, version {version}"),
        };
        table.row([name.clone(), format!("{what}{mark}")]);
    }
    table
}
