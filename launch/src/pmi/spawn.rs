//! `mcmd=spawn`: a rank asks its launcher to start processes, in a block of lines for each program.

use crate::LaunchError;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Variable that Hydra and our launcher set for spawned processes.
pub const SPAWNED: &str = "PMI_SPAWNED";
/// Variable of processes that a rank has spawned under PMIx: the job of that rank, and the port that it
/// gives them.
pub const STARTED_BY: &str = nmad_words::setting::STARTED_BY.name;
/// Key under which spawned processes find the port of the process that spawned them.
pub const PARENT_PORT: &str = "PARENT_ROOT_PORT_NAME";

/// Sole command-line word that makes our program the launcher of one request, which comes on standard
/// input.
pub const ASKED_WORD: &str = "--launch-asked";
/// Answer of such a launcher when the job runs.
pub const STARTED: &str = "started";

/// A program to be started, and the number of its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Number of processes.
    pub count: u32,
    /// Hints: `wdir` is the working folder, `host` names hosts, separated by commas.
    pub info: Vec<(String, String)>,
}

impl Wanted {
    /// Returns the working folder, if one was named.
    pub fn folder(&self) -> Option<PathBuf> {
        self.hint("wdir").map(PathBuf::from)
    }

    /// Returns the hosts that were named.
    pub fn hosts(&self) -> Vec<&str> {
        let names = self.hint("host").unwrap_or_default().split(',').map(str::trim);
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Returns the last value of a hint.
    fn hint(&self, wanted: &str) -> Option<&str> {
        self.info.iter().rev().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str())
    }

    /// Returns whether this process could start the program: the file is executable, or found in a folder
    /// of `PATH`.
    pub fn is_here(&self) -> bool {
        let may_run = |file: PathBuf| file.is_file() && access(&file, Access::EXEC_OK).is_ok();
        if self.program.contains('/') {
            return may_run(self.folder().unwrap_or_default().join(&self.program));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| may_run(folder.join(&self.program)))
    }
}

/// Programs that are started together as a job of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The programs.
    pub programs: Vec<Wanted>,
    /// Initial values in the new job's key-value space.
    pub preput: Vec<(String, String)>,
}

impl Request {
    /// Refuses programs that this process could not start. This check is for other launchers: PRRTE ends
    /// all jobs because of one missing program, and under Hydra the caller waits forever.
    ///
    /// # Errors
    /// [`LaunchError::NoSpawn`], with the program.
    pub fn check_here(&self) -> Result<(), LaunchError> {
        let Some(missing) = self.programs.iter().find(|wanted| !wanted.is_here()) else { return Ok(()) };
        Err(LaunchError::NoSpawn(format!("there is no program {} that may be executed", missing.program)))
    }
}

/// Writes the lines of a request, without the last newline.
///
/// # Errors
/// A text contains a newline.
pub fn write(request: &Request) -> Result<String, String> {
    let mut text = String::new();
    for (place, wanted) in request.programs.iter().enumerate() {
        let Wanted { program, args, count, info } = wanted;
        let mut lines = vec![
            "mcmd=spawn".to_string(),
            format!("nprocs={count}"),
            format!("execname={program}"),
            format!("totspawns={}", request.programs.len()),
            format!("spawnssofar={}", place + 1),
        ];
        lines.extend((1..).zip(args).map(|(number, arg)| format!("arg{number}={arg}")));
        lines.push(format!("argcnt={}", args.len()));
        lines.push(format!("preput_num={}", request.preput.len()));
        for (number, (key, value)) in request.preput.iter().enumerate() {
            lines.extend([format!("preput_key_{number}={key}"), format!("preput_val_{number}={value}")]);
        }
        lines.push(format!("info_num={}", info.len()));
        for (number, (key, value)) in info.iter().enumerate() {
            lines.extend([format!("info_key_{number}={key}"), format!("info_val_{number}={value}")]);
        }
        if let Some(line) = lines.iter().find(|line| line.contains(['\n', '\r'])) {
            return Err(format!("{line:?} has a newline in it, which no launcher takes"));
        }
        let newline = if place > 0 { "\n" } else { "" };
        text.push_str(&format!("{newline}{}\nendcmd", lines.join("\n")));
    }
    Ok(text)
}

/// Collects blocks into a request.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    request: Request,
}

impl Reading {
    /// Takes the lines of a block, without the first and the last one; returns the request after its last
    /// block.
    ///
    /// # Errors
    /// Names the missing or wrong line; the next block then begins a new request.
    pub fn block(&mut self, lines: &[String]) -> Result<Option<Request>, String> {
        let read = self.read(lines);
        match read {
            Ok(false) => Ok(None),
            Ok(true) => Ok(Some(std::mem::take(&mut self.request))),
            Err(why) => {
                self.request = Request::default();
                Err(why)
            }
        }
    }

    fn read(&mut self, lines: &[String]) -> Result<bool, String> {
        let get = |name: &str| {
            let found = lines.iter().filter_map(|line| line.split_once('=')).find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string()).ok_or_else(|| format!("{name}= is missing"))
        };
        let number = |name: &str| {
            let text = get(name)?;
            text.parse::<u32>().map_err(|_| format!("{name}={text} is not a number"))
        };
        let pairs = |count: &str, key: &str, value: &str| {
            // No block has more pairs than lines.
            let count = number(count).unwrap_or(0).min(lines.len() as u32);
            let pair = |place| Ok((get(&format!("{key}{place}"))?, get(&format!("{value}{place}"))?));
            (0..count).map(pair).collect::<Result<Vec<_>, String>>()
        };
        let args =
            (1..=number("argcnt").unwrap_or(0).min(lines.len() as u32)).map(|n| get(&format!("arg{n}")));
        self.request.programs.push(Wanted {
            program: get("execname")?,
            args: args.collect::<Result<_, _>>()?,
            count: number("nprocs")?,
            info: pairs("info_num", "info_key_", "info_val_")?,
        });
        self.request.preput = pairs("preput_num", "preput_key_", "preput_val_")?;
        Ok(number("spawnssofar")? >= number("totspawns")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let wanted = |program: &str, count| Wanted {
            program: program.into(),
            args: vec!["-x".into(), "two words=1".into()],
            count,
            info: vec![("wdir".into(), "/tmp".into())],
        };
        let preput = vec![("PARENT_ROOT_PORT_NAME".into(), "nmad#1#2#".into())];
        Request { programs: vec![wanted("./a", 2), wanted("b", 1)], preput }
    }

    #[test]
    fn a_request_survives_the_trip() {
        let text = write(&request()).expect("no newlines");
        let mut reading = Reading::default();
        let blocks: Vec<Vec<String>> = text
            .split("endcmd")
            .map(|block| block.trim().lines().skip(1).map(String::from).collect())
            .filter(|block: &Vec<String>| !block.is_empty())
            .collect();
        assert_eq!(blocks.len(), 2);
        assert_eq!(reading.block(&blocks[0]), Ok(None));
        assert_eq!(reading.block(&blocks[1]), Ok(Some(request())));
        assert_eq!(request().programs[0].folder(), Some(PathBuf::from("/tmp")));
    }

    #[test]
    fn programs_are_looked_for_in_their_folder_and_in_path() {
        let wanted = |program: &str, folder: &str| Wanted {
            program: program.into(),
            info: vec![("wdir".into(), folder.into())],
            ..Wanted::default()
        };
        for (program, is_here) in
            [("sh", true), ("./sh", true), ("/bin/sh", true), ("no-such-program", false)]
        {
            assert_eq!(wanted(program, "/bin").is_here(), is_here, "{program}");
        }
        assert!(!wanted("./sh", "/").is_here() && !wanted("/bin", "/").is_here());
    }

    #[test]
    fn malformed_requests_name_the_error() {
        let mut reading = Reading::default();
        for (lines, word) in [(vec![], "execname"), (vec!["execname=x", "nprocs=y"], "nprocs=y")] {
            let lines: Vec<String> = lines.into_iter().map(String::from).collect();
            assert!(reading.block(&lines).expect_err(word).contains(word));
        }
        let mut wrong = request();
        wrong.programs[0].program = "a\nendcmd".into();
        assert!(write(&wrong).expect_err("a newline").contains("newline"));
    }
}
