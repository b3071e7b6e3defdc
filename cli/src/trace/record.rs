//! `nmad trace -- COMMAND`: runs a command that writes traces, and shows them.

use std::process::{Command, ExitCode};

use super::{TraceArgs, otf2, read, show};

/// Runs the command with `NMAD_TRACE`; its exit code, if it fails, is that of the trace.
pub(super) fn run(args: &TraceArgs, command: &[String]) -> Result<ExitCode, String> {
    // A path that cannot be written to is known before the run.
    for path in args.outputs() {
        nmad_words::file::create(&path)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if let Some(folder) = &args.otf2 {
        otf2::check(folder)?;
    }
    let folder =
        tempfile::tempdir().map_err(|error| format!("cannot make a folder for the trace: {error}"))?;
    let [program, arguments @ ..] = command else { return Err("no command is given".into()) };
    let status = Command::new(program)
        .args(arguments)
        .env("NMAD_TRACE", folder.path())
        .status()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    let job = read(&[folder.path().to_owned()]).map_err(|_| {
        format!("{program} has written no trace: it is to run ranks that use this library ({status})")
    })?;
    show(args, job)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
