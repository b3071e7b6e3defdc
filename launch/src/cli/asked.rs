//! Jobs spawned by a process without a launcher: it starts a launcher for each of them.
//!
//! The launcher's standard input is a socket. The request comes on it in the form of PMI-1, and the answer
//! goes back: [`STARTED`], or the reason of the failure. So the request is on no command line, which other
//! users can read and where `:` has a meaning.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use crate::local::SPEAKER;
use crate::local::run::Run;
use crate::pmi::spawn::{ASKED_WORD, Reading, Request, STARTED};
use crate::{Job, LaunchError};

/// Time limit of the request, which arrives at once if it was sent.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// Runs the job of the request on standard input to its end.
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
            // The requesting process reports the error to the user. If it is gone, the error is dropped.
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
    run.run_to_end().map(|report| report.code)
}

fn read(stream: &UnixStream) -> Result<Request, String> {
    stream.set_read_timeout(Some(REQUEST_LIMIT)).map_err(|error| error.to_string())?;
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
