//! Starts the agents of a job by the method for its hosts.

use super::message::{Intro, Node};
use super::starter::Leaders;
use super::way::Way;
use super::{AGENT_WORD, Machines};
use crate::reach::is_here;
use crate::{LaunchError, Secret};

/// Starts an agent on each host, or a command that starts them.
pub fn start_agents(
    leaders: &mut Leaders,
    machines: &Machines,
    intro: Intro,
) -> Result<Option<Letter>, LaunchError> {
    let program = &machines.starting.program;
    let all: Vec<(u32, String)> = (0..).zip(machines.hosts.iter().cloned()).collect();
    match &machines.starting.way {
        Way::Shell(_) => {
            let (here, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, host)| is_here(host));
            for (node, host) in here {
                let line = Intro { node: Node::Number(node), ..intro.clone() }.to_line();
                leaders.start(&[own_program()?, AGENT_WORD.to_owned()], Some(node), &host, &line)?;
            }
            leaders.start_tree(&others, &intro)?;
            Ok(None)
        }
        Way::Step { command, variable } => {
            let node = Node::Named { variable: variable.clone(), hosts: machines.hosts.clone() };
            let line = Intro { node, ..intro }.to_line();
            let words = [&command[..], &[program.clone(), AGENT_WORD.to_owned()]].concat();
            leaders.start(&words, None, "the hosts", &line)?;
            Ok(None)
        }
        Way::Tasks(command) => {
            let node = Node::Named { variable: String::new(), hosts: machines.hosts.clone() };
            let letter = Letter::write(&Intro { node, input_stays: false, ..intro }.to_line())?;
            for (node, host) in all {
                let end = [host.clone(), program.clone(), AGENT_WORD.to_owned(), letter.path.clone()];
                leaders.start(&[&command[..], &end].concat(), Some(node), &host, "")?;
            }
            Ok(Some(letter))
        }
    }
}

/// Returns the path of this program.
pub fn own_program() -> Result<String, LaunchError> {
    let path =
        std::env::current_exe().map_err(LaunchError::system("cannot find the path of this program"))?;
    path.into_os_string().into_string().map_err(|path| {
        LaunchError::Job(format!(
            "the path {} of this program is not text: install it elsewhere",
            path.display()
        ))
    })
}

/// A file with the initial information that only this user can read, in the home directory, where agents on
/// other hosts see it too.
pub struct Letter {
    path: String,
}

impl Letter {
    fn write(text: &str) -> Result<Letter, LaunchError> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let home = std::env::var("HOME").unwrap_or_default();
        let path = format!("{home}/.nmad-{}", &Secret::random()?.to_hex()[..24]);
        let failed = format!("cannot write {path}, by which agents learn what to do");
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(LaunchError::system(failed.clone()))?;
        let letter = Letter { path };
        file.write_all(text.as_bytes()).map_err(LaunchError::system(failed))?;
        Ok(letter)
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
