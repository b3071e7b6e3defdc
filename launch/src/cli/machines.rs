//! Options that name machines: whether all of them are this one.

use crate::host_name;
use std::ffi::OsStr;
use std::fs::read_to_string;

/// What this machine is called by itself.
const LOCAL: [&str; 2] = ["localhost", "127.0.0.1"];

/// The first host of a list (`NAME,NAME:RANKS`) that is not this machine.
pub fn foreign_in_list(list: &OsStr) -> Option<String> {
    foreign(list.to_string_lossy().split(','))
}

/// The first host of a file (lines `NAME`, `NAME:RANKS` or `NAME slots=RANKS`; `#` begins a comment) that is
/// not this machine.
///
/// # Errors
/// Why it cannot be read.
pub fn foreign_in_file(path: &OsStr) -> Result<Option<String>, String> {
    let text = read_to_string(path)
        .map_err(|error| format!("cannot read the host list {}: {error}", path.display()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    Ok(foreign(lines.filter_map(|line| line.split_ascii_whitespace().next())))
}

fn foreign<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let own = host_name();
    let short = own.split('.').next().unwrap_or_default();
    let is_here = |name: &str| LOCAL.contains(&name) || name == own || name == short;
    let name = |entry: &'a str| entry.split_once(':').map_or(entry, |(name, _)| name);
    names.map(name).find(|name| !is_here(name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_several_names() {
        let list = format!("localhost:4,127.0.0.1,{}:1", host_name());
        assert_eq!(foreign_in_list(list.as_ref()), None);
        assert_eq!(foreign_in_list("localhost,far.example:2".as_ref()), Some("far.example".into()));
    }

    #[test]
    fn files_have_a_host_in_each_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# ours\nlocalhost slots=4\n\nlocalhost:2 # twice\n").unwrap();
        assert_eq!(foreign_in_file(file.path().as_os_str()), Ok(None));
        std::fs::write(file.path(), "localhost\nfar slots=2\n").unwrap();
        assert_eq!(foreign_in_file(file.path().as_os_str()), Ok(Some("far".into())));
        assert!(foreign_in_file("/no/such/file".as_ref()).unwrap_err().contains("/no/such/file"));
    }
}
