//! Starts the launcher as a program and waits for it, never longer than a limit.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Nothing here takes seconds, except on a machine that does a hundred other things.
const LIMIT: Duration = Duration::from_secs(60);

/// The probe program of this crate: launcher and misbehaving ranks in one.
pub const PROBE: &str = env!("CARGO_BIN_EXE_launch-probe");

/// What a launcher left behind.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A launcher that runs. Dropping it kills it.
pub struct Launcher {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    deadline: Instant,
}

/// Runs `launch-probe run ARGS...` to its end.
pub fn launch(args: &[&str]) -> Done {
    Launcher::start(args, &[]).done()
}

/// Runs `launch-probe run OPTIONS... launch-probe rank WORDS...` to its end.
pub fn ranks(options: &[&str], words: &[&str]) -> Done {
    let mut args = options.to_vec();
    args.extend([PROBE, "rank"]);
    args.extend(words);
    launch(&args)
}

impl Launcher {
    pub fn start(args: &[&str], env: &[(&str, &str)]) -> Launcher {
        let mut command = Command::new(PROBE);
        command.arg("run").args(args).env_remove("NMAD_TESTBED").envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Launcher { child, out, err, deadline: Instant::now() + LIMIT }
    }

    /// Writes to the standard input and closes it. A launcher that refuses its arguments may have
    /// ended before.
    pub fn input(&mut self, text: &str) {
        if let Err(error) = self.child.stdin.take().unwrap().write_all(text.as_bytes()) {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
    }

    /// The next line of standard output, as soon as it is there.
    pub fn line(&self) -> String {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.out.recv_timeout(left).expect("a line within the limit")
    }

    /// Sends a signal to the launcher alone.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until a signal has stopped the launcher.
    pub fn stopped(&self) {
        let (sender, receiver) = channel();
        let pid = self.pid();
        // waitpid(2) has no limit of its own.
        thread::spawn(move || sender.send(waitpid(Some(pid), WaitOptions::UNTRACED)));
        let left = self.deadline.saturating_duration_since(Instant::now());
        let (_, status) = receiver.recv_timeout(left).expect("an answer within the limit").unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
    }

    /// Waits until everybody who could write has gone: the launcher, the guard, ranks and their children.
    pub fn all_gone(&self) -> Vec<String> {
        rest(&self.out, self.deadline)
    }

    /// Waits for the end.
    pub fn done(mut self) -> Done {
        drop(self.child.stdin.take());
        let out = rest(&self.out, self.deadline).concat();
        let err = rest(&self.err, self.deadline).concat();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Done { code, out, err }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a stream, ends included, as they come.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

fn rest(lines: &Receiver<String>, deadline: Instant) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => all.push(line),
            Err(RecvTimeoutError::Disconnected) => return all,
            Err(RecvTimeoutError::Timeout) => panic!("no end within {LIMIT:?}; so far: {all:?}"),
        }
    }
}
