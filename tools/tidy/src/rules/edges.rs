//! Which folders of the engine may name which (ARCHITECTURE.md, section "Which layer may know which").
//!
//! The compiler keeps the order of the crates; this table keeps the order within one crate. A folder may name
//! itself, the modules of its row, and the modules free to all. A folder without a row may name only free
//! ones.
use crate::{Finding, Tree, paths};

const SOURCE: &str = "engine/src";

/// Modules that everybody may name.
const FREE: &[&str] = &["clock", "memory", "packet"];

/// The files where the layers meet; they may name everything.
const JOINTS: &[&str] = &["lib", "engine", "pump", "port"];

/// Folder, and the modules it may name: `schedule` allows all of it, `schedule::strategy` one module.
const EDGES: &[(&str, &[&str])] = &[
    // Layer 1, what the application asked: it never sees a rail.
    // A message may be a probe, which names its method.
    ("collect", &["profile::sample"]),
    // What rails were measured to do.
    ("profile", &[]),
    // Layer 2, what an idle rail carries: it sees the window and the view of a rail, never a driver.
    ("schedule", &["collect", "profile"]),
    // Layer 3, the orders of rails and their reports: it sees orders, never the window. It names messages in
    // receive regions, and keeps a packet that is ready beside the rail it waits for. Its profile says which
    // packets a rail takes, and until when it is busy.
    ("transfer", &["collect::request", "schedule::builder", "profile"]),
    // What the user of an engine chooses.
    ("config", &["schedule", "transfer"]),
    // Receives of the application never see a rail but by number, nor what an idle rail carries.
    ("receive", &["collect", "engine", "protocol", "slab"]),
    // Protocols move frames between all three layers; what is observed of them they ask by methods.
    ("protocol", &["collect", "config", "schedule", "transfer", "profile", "engine", "observe", "slab"]),
    // Observers look at everything and are asked, by methods.
    ("observe", &["collect", "config", "schedule", "transfer", "profile", "engine", "protocol"]),
];

/// Rule `edge`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, _) in tree.with_extension("rs") {
        let Some(module) = module_of(path) else { continue };
        let layer = module.first().cloned().unwrap_or_default();
        if JOINTS.contains(&&*layer) {
            continue;
        }
        for named in paths::in_tokens(tree.tokens(path), &module) {
            if !is_allowed(&layer, &named.path) {
                let what = format!(
                    "`{layer}` may not name `{}`: see EDGES in tidy's edges.rs",
                    named.path.join("::")
                );
                findings.push(Finding::new("edge", path, named.line, what));
            }
        }
    }
    findings.dedup();
    findings
}

/// The module that a file of the engine is: `["schedule", "split"]` for `engine/src/schedule/split.rs`.
fn module_of(path: &str) -> Option<Vec<String>> {
    let inner = path.strip_prefix(SOURCE)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    Some(inner.split('/').map(str::to_owned).collect())
}

fn is_allowed(layer: &str, path: &[String]) -> bool {
    let row = EDGES.iter().find(|(folder, _)| *folder == layer).map_or(&[][..], |(_, allowed)| allowed);
    let named = path.join("::");
    let own = [layer];
    path.is_empty() || row.iter().chain(FREE).chain(&own).any(|module| lies_in(&named, module))
}

/// Whether a path is `module` or leads into it.
fn lies_in(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}
