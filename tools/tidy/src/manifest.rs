//! Which files cargo compiles by itself: the roots of the crates.
use crate::Tree;
use crate::tree::{folder_of, join};

/// Folders whose direct children are targets, and whose subfolders are if they have a `main.rs`.
const TARGET_FOLDERS: [&str; 4] = ["src/bin", "examples", "tests", "benches"];

/// The crate roots of every package in the tree, whether or not it is a member of the workspace.
pub fn crate_roots(tree: &Tree) -> Vec<String> {
    let manifests =
        tree.with_extension("toml").filter(|(path, _)| path.rsplit('/').next() == Some("Cargo.toml"));
    manifests.flat_map(|(path, text)| package_roots(tree, folder_of(path), text)).collect()
}

fn package_roots(tree: &Tree, folder: &str, manifest: &str) -> Vec<String> {
    let Ok(manifest) = manifest.parse::<toml::Table>() else { return Vec::new() };
    let Some(package) = manifest.get("package") else { return Vec::new() };
    let mut paths: Vec<String> = ["src/lib.rs", "src/main.rs", "build.rs"].map(str::to_owned).to_vec();
    paths.extend(package.get("build").and_then(|build| build.as_str()).map(str::to_owned));
    paths.extend(written_paths(&manifest));
    let mut roots: Vec<String> = paths.iter().filter_map(|path| join(folder, path)).collect();
    for target in TARGET_FOLDERS {
        let Some(targets) = join(folder, target) else { continue };
        roots.extend(tree.under(&targets).filter(|path| is_target(&targets, path)).map(str::to_owned));
    }
    roots.retain(|root| tree.has(root));
    roots
}

/// The paths that the manifest writes down for its targets.
fn written_paths(manifest: &toml::Table) -> Vec<String> {
    let one = manifest.get("lib").into_iter();
    let lists =
        ["bin", "example", "test", "bench"].into_iter().filter_map(|kind| manifest.get(kind)?.as_array());
    let targets = one.chain(lists.flatten());
    targets.filter_map(|target| Some(target.get("path")?.as_str()?.to_owned())).collect()
}

fn is_target(folder: &str, path: &str) -> bool {
    let rest = path.strip_prefix(folder).map_or("", |rest| rest.trim_start_matches('/'));
    match rest.split('/').collect::<Vec<_>>()[..] {
        [file] => file.ends_with(".rs"),
        [_, file] => file == "main.rs",
        _ => false,
    }
}
