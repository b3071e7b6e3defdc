//! Lists of machines, in the forms of MPICH's and Open MPI's launchers.

use std::ffi::OsStr;
use std::fs::read_to_string;
use std::path::Path;

use crate::remote::Machine;

/// Keys of the number of slots.
const SLOTS: [&str; 3] = ["slots", "cpu", "count"];

/// Keys of the user's name there.
const USER: [&str; 4] = ["user", "username", "user_name", "user-name"];

/// Keys without effect here: ranks may always outnumber slots.
const WITHOUT_EFFECT: [&str; 6] = ["max_slots", "max-slots", "slots_max", "slots-max", "ifname", "binding"];

/// Parses a list `NAME,NAME:SLOTS`. A repeated name adds its slots.
///
/// # Errors
/// The list is malformed.
pub fn in_list(list: &OsStr) -> Result<Vec<Machine>, String> {
    let list = list.to_string_lossy();
    let mut machines = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let (name, slots) =
            name(entry).map_err(|why| format!("the list of hosts {list:?} has {entry:?}: {why}"))?;
        add(&mut machines, name, slots.unwrap_or(1));
    }
    Ok(machines)
}

/// Reads a file with lines `NAME`, `NAME:SLOTS` or `NAME slots=SLOTS`; `#` begins a comment.
///
/// # Errors
/// The file cannot be read, or a line is malformed.
pub fn in_file(path: &Path) -> Result<Vec<Machine>, String> {
    let shown = path.display();
    let text = read_to_string(path).map_err(|error| format!("cannot read the host list {shown}: {error}"))?;
    let mut machines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_blanks_around_equals(line.split('#').next().unwrap_or_default());
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        let read = name(first).and_then(|(name, slots)| rest(words, name, slots));
        let (name, slots) = read.map_err(|why| format!("line {number} of the host list {shown}: {why}"))?;
        add(&mut machines, &name, slots);
    }
    if machines.is_empty() { Err(format!("the host list {shown} names no host")) } else { Ok(machines) }
}

/// Removes blanks around `=`: Open MPI accepts `slots = 4` as well as `slots=4`.
fn without_blanks_around_equals(line: &str) -> String {
    line.split('=').map(str::trim).collect::<Vec<_>>().join("=")
}

/// Parses the words behind a name.
fn rest<'a>(
    words: impl Iterator<Item = &'a str>,
    name: &str,
    mut slots: Option<u32>,
) -> Result<(String, u32), String> {
    let mut full = name.to_owned();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        if SLOTS.contains(&key) {
            slots = Some(number(value)?);
        } else if USER.contains(&key) {
            full = format!("{value}@{name}");
        } else if !WITHOUT_EFFECT.contains(&key) {
            return Err(format!(
                "{word:?} is not understood; a line is NAME, NAME:SLOTS or NAME slots=SLOTS"
            ));
        }
    }
    Ok((full, slots.unwrap_or(1)))
}

/// Parses `NAME` or `NAME:SLOTS`; an IPv6 address has brackets if slots follow.
fn name(entry: &str) -> Result<(&str, Option<u32>), String> {
    let (name, slots) = match entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => match entry.split_once(':') {
            Some((_, rest)) if rest.contains(':') => (entry, None),
            Some((name, slots)) => (name, Some(slots)),
            None => (entry, None),
        },
    };
    // ssh would read a name that begins with a dash as an option.
    if name.is_empty() || name.starts_with('-') {
        return Err("a host has a name".into());
    }
    Ok((name, slots.map(number).transpose()?))
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{text:?} is no number of slots")),
    }
}

fn add(machines: &mut Vec<Machine>, name: &str, slots: u32) {
    match machines.iter_mut().find(|machine| machine.name == name) {
        Some(machine) => machine.slots = machine.slots.saturating_add(slots),
        None => machines.push(Machine { name: name.to_owned(), slots }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(machines: &[Machine]) -> String {
        let machine = |machine: &Machine| format!("{}={}", machine.name, machine.slots);
        machines.iter().map(machine).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lists_have_names_and_slots() {
        let read = |list: &str| in_list(list.as_ref()).map(|machines| told(&machines));
        assert_eq!(read("a,b:2,a:3"), Ok("a=4 b=2".into()));
        assert_eq!(read("fd88::2,[fd88::3]:4"), Ok("fd88::2=1 fd88::3=4".into()));
        for (list, words) in
            [("a,,b", "a host has a name"), ("a:x", "\"x\""), ("a:0", "no number"), ("-oX", "name")]
        {
            assert!(read(list).expect_err(list).contains(words), "{list}");
        }
    }

    #[test]
    fn files_have_the_forms_of_hydra_and_of_open_mpi() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let read = |text: &str| {
            std::fs::write(file.path(), text).expect("it is written");
            in_file(file.path()).map(|machines| told(&machines))
        };
        let text = "# ours\na slots=4 max_slots=8\n\nb:2 # twice\nc ifname=eth0\nd user=me slots=3\n";
        assert_eq!(read(text), Ok("a=4 b=2 c=1 me@d=3".into()));
        let text = "\ta  slots = 3 max-slots= 8\r\n[::1]:2\nfd00::1 slots =4\nb cpu=2\nb count=1";
        assert_eq!(read(text), Ok("a=3 ::1=2 fd00::1=4 b=3".into()));
        for (text, words) in [
            ("", "names no host"),
            ("a\nb slots=x\n", "line 2"),
            ("a color = 3\n", "\"color=3\" is not understood"),
            (":4\n", "line 1"),
        ] {
            assert!(read(text).expect_err(text).contains(words), "{text}");
        }
        assert!(in_file("/no/such/file".as_ref()).expect_err("there is none").contains("/no/such/file"));
    }
}
