//! Jobs for a process that no launcher has started: it starts a launcher for each job that it asks for.
//!
//! The launcher's standard input is a socket, on which the request comes, as it does in PMI-1, and the answer
//! goes back: [`STARTED`], or why nothing was started. So the request is on no command line, which others can
//! read and which knows words of its own (`:`).

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use crate::local::SPEAKER;
use crate::local::run::Run;
use crate::pmi::spawn::{ASKED_WORD, Reading, Request, STARTED};
use crate::{Job, LaunchError};

/// The request is there at once, unless nobody sends one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the job that standard input asks for, to its end.
pub fn main() -> ExitCode {
    let fd = rustix::stdio::stdin().try_clone_to_owned();
    let stream = match fd.map(UnixStream::from) {
        Ok(stream) if stream.peer_addr().is_ok() => stream,
        Ok(_) | Err(_) => {
            nmad_words::tell_user(format_args!("{SPEAKER}: {ASKED_WORD} is for programs that spawn others"));
            return ExitCode::from(2);
        }
    };
    match serve(&stream) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            // The process that has asked tells the user. If it is gone, nobody waits for an answer.
            let _ = writeln!(&stream, "{}", error.to_string().replace('\n', "; "));
            ExitCode::from(error.exit_code())
        }
    }
}

fn serve(stream: &UnixStream) -> Result<i32, LaunchError> {
    let request =
        read(stream).map_err(|why| LaunchError::NoSpawn(format!("the request is not whole: {why}")))?;
    let job = Job::asked(&request, &Job::new("", [] as [&str; 0], 0))?;
    let run = Run::start(job, &request.preput)?;
    let answer = (&*stream).write_all(format!("{STARTED}\n").as_bytes());
    answer.map_err(LaunchError::system("answering the process that asked for this job"))?;
    run.until_its_end().map(|report| report.code)
}

fn read(stream: &UnixStream) -> Result<Request, String> {
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
    let (mut reading, mut block) = (Reading::default(), Vec::new());
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(|error| error.to_string())?;
        match line.as_str() {
            "mcmd=spawn" => block.clear(),
            "endcmd" => {
                if let Some(request) = reading.block(&block)? {
                    return Ok(request);
                }
            }
            _ => block.push(line),
        }
    }
    Err("it ends too early".into())
}
