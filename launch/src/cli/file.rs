//! Files of programs: arguments of `mpiexec` as lines of a file (MPI 4.1, section 11.5).

use std::ffi::{OsStr, OsString};
use std::fs::read_to_string;

/// Returns the words of all lines, with `:` between programs. A line that begins with `#` is a comment, one
/// that ends with `\` continues in the next; words are quoted as in a shell.
///
/// # Errors
/// The file cannot be read.
pub fn words(path: &OsStr) -> Result<Vec<OsString>, String> {
    let fail = |why: &str| format!("cannot read the file of programs {}: {why}", path.display());
    let text = read_to_string(path).map_err(|error| fail(&error.to_string()))?;
    let mut all: Vec<OsString> = Vec::new();
    for line in lines(&text) {
        let words = shlex::split(&line).ok_or_else(|| fail(&format!("a quote stays open in `{line}`")))?;
        if !all.is_empty() {
            all.push(":".into());
        }
        all.extend(words.into_iter().map(OsString::from));
    }
    if all.is_empty() { Err(fail("it names no program")) } else { Ok(all) }
}

/// Returns one line for each program, with continued lines joined.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let (part, goes_on) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        if let Some(last) = lines.last_mut() {
            last.push_str(part);
        }
        if !goes_on {
            lines.push(String::new());
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_make_no_sense_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, why) in
            [("", "names no program"), ("# a\n\n", "names no program"), ("a 'b", "stays open in `a 'b`")]
        {
            std::fs::write(file.path(), text).unwrap();
            let error = words(file.path().as_os_str()).unwrap_err();
            assert!(error.contains(why) && error.contains(&*file.path().to_string_lossy()), "{error}");
        }
    }
}
