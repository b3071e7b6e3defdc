//! The files of the workspace, read once.
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use proc_macro2::TokenTree;

use crate::source;

/// Folders that hold no source of ours, by path from the root, or by name anywhere.
const SKIPPED_PATHS: [&str; 4] = ["target", "fuzz/target", "fuzz/artifacts", "fuzz/corpus"];
const SKIPPED_NAMES: [&str; 2] = [".git", "node_modules"];

/// Extensions of the files whose text is read; of others only the name is known.
const TEXT: [&str; 4] = ["rs", "md", "toml", "txt"];

/// The files of a workspace by path from its root, with `/` between folders.
pub struct Tree {
    files: BTreeMap<String, File>,
}

struct File {
    text: Option<String>,
    /// Its tokens, once a rule has asked for them.
    tokens: OnceCell<Result<Vec<TokenTree>, String>>,
}

impl Tree {
    /// Reads all files below `root`, except build output. Links are not followed.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree { files: BTreeMap::new() };
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> io::Result<()> {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED_PATHS.contains(&&*path) && !SKIPPED_NAMES.contains(&&*name) {
                self.read_folder(root, &path)?;
            } else if kind.is_file() {
                let is_text = extension(&path).is_some_and(|ext| TEXT.contains(&ext));
                let text = if is_text { Some(fs::read_to_string(entry.path())?) } else { None };
                self.files.insert(path, File { text, tokens: OnceCell::new() });
            }
        }
        Ok(())
    }

    /// Path and text of the files with this extension, in order of path.
    pub fn with_extension(&self, wanted: &str) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().filter(move |(path, _)| extension(path) == Some(wanted));
        files.filter_map(|(path, file)| Some((path.as_str(), file.text.as_deref()?)))
    }

    /// The text of a file, if it exists and is text.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.text.as_deref()
    }

    /// The tokens of a file of Rust, or why it has none. All rules share them.
    pub fn syntax(&self, path: &str) -> Result<&[TokenTree], &str> {
        let Some(file) = self.files.get(path) else { return Ok(&[]) };
        let tokens = file.tokens.get_or_init(|| source::tokens(file.text.as_deref().unwrap_or_default()));
        tokens.as_deref().map_err(String::as_str)
    }

    /// The tokens of a file of Rust; of one that is broken there are none.
    pub fn tokens(&self, path: &str) -> &[TokenTree] {
        self.syntax(path).unwrap_or_default()
    }

    /// Whether a file or folder of this path exists.
    pub fn has(&self, path: &str) -> bool {
        path.is_empty() || self.files.contains_key(path) || self.under(path).next().is_some()
    }

    /// The paths of the files below a folder, at any depth.
    pub fn under(&self, folder: &str) -> impl Iterator<Item = &str> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let from = self.files.range(prefix.clone()..);
        from.map(|(path, _)| path.as_str()).take_while(move |path| path.starts_with(&prefix))
    }
}

fn extension(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.rsplit_once('.').map(|(_, ext)| ext)
}

/// The folder of a path; empty for the root.
pub fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `relative` as seen from `folder`, with `.` and `..` resolved; `None` if it leaves the root.
pub fn join(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn relative_paths_are_resolved_within_the_root() {
        assert_eq!(join("a/b", "../c.rs").as_deref(), Some("a/c.rs"));
        assert_eq!(join("", "./x").as_deref(), Some("x"));
        assert_eq!(join("a", "../../x"), None);
    }
}
