//! Plug-ins: files that contain strategies. A strategy in a plug-in has the name `FILE.so:NAME`.

use super::loading;
use nmad_plugin::{Offered, Table};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The parsed name of a strategy in a plug-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named<'a> {
    file: &'a str,
    /// `None`: the file has a single strategy.
    strategy: Option<&'a str>,
}

/// A loaded plug-in.
#[derive(Debug, Clone)]
pub struct PlugIn {
    /// Its file, as the user gave it.
    pub given: String,
    /// Absolute path of its file.
    pub path: PathBuf,
    /// Version that the plug-in states; may be empty.
    pub version: String,
    tables: Vec<Table>,
}

impl<'a> Named<'a> {
    /// Parses the name of a strategy. It names a plug-in if the part before the colon contains a slash or
    /// `.so.`, or ends with `.so`.
    pub(super) fn parse(name: &'a str) -> Option<Named<'a>> {
        let (file, strategy) = match name.rsplit_once(':') {
            Some((file, strategy)) if !strategy.contains('/') => (file, Some(strategy)),
            _ => (name, None),
        };
        let is_file = file.contains('/') || file.ends_with(".so") || file.contains(".so.");
        is_file.then_some(Named { file, strategy: strategy.filter(|strategy| !strategy.is_empty()) })
    }
}

impl PlugIn {
    /// Loads the file; a relative path is relative to the working directory.
    ///
    /// # Errors
    /// The file is missing, is writable by other users, or is not a plug-in of this version.
    pub(super) fn load(named: &Named<'_>) -> Result<PlugIn, String> {
        if has_elevated_rights() {
            return Err("a process with the rights of another user (setuid, setgid) loads no plug-in".into());
        }
        let path = std::path::absolute(named.file).map_err(|why| format!("'{}': {why}", named.file))?;
        check_file(&path)?;
        let Offered { version, tables } =
            loading::strategies_of(&path).map_err(|why| format!("plug-in {} {why}", path.display()))?;
        Ok(PlugIn { given: named.file.into(), path, version, tables })
    }

    /// Returns the names of its strategies.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(Table::name)
    }

    /// Returns the name, without the file, of the strategy that `FILE.so:NAME` or `FILE.so` selects.
    pub fn chosen(&self, name: &str) -> Option<&str> {
        self.table(&Named::parse(name)?).ok().map(Table::name)
    }

    /// Returns the strategy that a parsed name selects.
    ///
    /// # Errors
    /// The plug-in has no strategy with this name, or the name selects none of several.
    pub(super) fn table(&self, named: &Named<'_>) -> Result<&Table, String> {
        let (shown, names) = (self.path.display(), || self.names().collect::<Vec<_>>().join(", "));
        match (named.strategy, &self.tables[..]) {
            (None, [only]) => Ok(only),
            (None, _) => Err(format!(
                "plug-in {shown} has several strategies ({}): choose one as {}:NAME",
                names(),
                named.file
            )),
            (Some(name), tables) => {
                let found = tables.iter().find(|table| table.name() == name);
                found.ok_or_else(|| format!("plug-in {shown} has no strategy '{name}' (it has: {})", names()))
            }
        }
    }
}

/// Checks that a file exists and that only its user or root can change it. Otherwise this process would run
/// the code of another user.
fn check_file(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let real = path.canonicalize().map_err(|why| match why.kind() {
        std::io::ErrorKind::NotFound => format!(
            "there is no plug-in {shown}; a relative path starts in the working directory of each process"
        ),
        _ => format!("plug-in {shown} cannot be read: {why}"),
    })?;
    let look = |path: &Path| {
        path.metadata().map_err(|why| format!("plug-in {} cannot be read: {why}", path.display()))
    };
    let file = look(&real)?;
    if !file.is_file() {
        return Err(format!("plug-in {shown} is no file"));
    }
    let user = rustix::process::geteuid().as_raw();
    check_owner(&file, user).map_err(|why| format!("plug-in {shown} {why}"))?;
    for folder in [path, &real].into_iter().filter_map(|path| path.parent()) {
        check_folder(&look(folder)?)
            .map_err(|why| format!("folder {} of a plug-in {why}", folder.display()))?;
    }
    Ok(())
}

/// Returns whether the process has other rights than the user who started it and set its environment.
fn has_elevated_rights() -> bool {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    getuid() != geteuid() || getgid() != getegid()
}

/// Permission bits: writable by the group, writable by others, and only owners may replace files in a
/// folder.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;
const STICKY: u32 = 0o1000;

fn check_owner(file: &Metadata, user: u32) -> Result<(), String> {
    let owner = file.uid();
    if owner != 0 && owner != user {
        return Err(format!(
            "belongs to user {owner}, who could change it, and this process runs as user {user}: use a copy"
        ));
    }
    if file.mode() & (GROUP | OTHERS) != 0 {
        return Err("may be changed by other users, whose code would run in this process: chmod go-w".into());
    }
    Ok(())
}

fn check_folder(folder: &Metadata) -> Result<(), String> {
    let may_replace = folder.mode() & OTHERS != 0 && folder.mode() & STICKY == 0;
    let why = "may be changed by all users, whose code would run in this process: chmod o-w";
    if may_replace { Err(why.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions");
    }

    #[test]
    fn plug_in_names_have_a_file_and_optionally_a_strategy() {
        let named = |file, strategy| Some(Named { file, strategy });
        for (name, expected) in [
            ("./mine.so:halves", named("./mine.so", Some("halves"))),
            ("mine.so", named("mine.so", None)),
            ("mine.so:", named("mine.so", None)),
            ("mine.so.1:halves", named("mine.so.1", Some("halves"))),
            ("/a:b/mine", named("/a:b/mine", None)),
            ("auto", None),
            ("my:own", None),
            ("", None),
        ] {
            assert_eq!(Named::parse(name), expected, "{name}");
        }
    }

    #[test]
    fn a_file_that_others_may_write_to_is_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.so");
        let checked = || check_file(&file).err().unwrap_or_default();
        assert!(checked().contains("working directory"), "{}", checked());
        fs::write(&file, "").expect("a file");
        for (mode, is_right) in [(0o644, true), (0o664, false), (0o646, false), (0o600, true)] {
            set(&file, mode);
            assert_eq!(checked().is_empty(), is_right, "{mode:o}: {}", checked());
        }
        for (mode, is_right) in [(0o777, false), (0o1777, true), (0o775, true), (0o700, true)] {
            set(folder.path(), mode);
            assert_eq!(checked().is_empty(), is_right, "{mode:o}: {}", checked());
        }
        // The folder of a symbolic link is checked too: another user could replace the link.
        let open = tempfile::tempdir().expect("a folder");
        let link = open.path().join("y.so");
        symlink(&file, &link).expect("a link");
        set(open.path(), 0o777);
        assert!(check_file(&link).is_err_and(|why| why.contains("all users")));
        assert!(check_file(folder.path()).is_err_and(|why| why.contains("no file")));
        // Only root may give a file away.
        if chown(&file, Some(12345), None).is_ok() {
            assert!(checked().contains("belongs to user 12345"), "{}", checked());
        }
    }

    #[test]
    fn a_file_that_is_not_a_library_is_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.so");
        fs::write(&file, "no library").expect("a file");
        let named = Named { file: file.to_str().expect("text"), strategy: None };
        let error = PlugIn::load(&named).expect_err("no library");
        assert!(error.contains("x.so cannot be loaded (") && error.contains("cc -shared"), "{error}");
    }
}
