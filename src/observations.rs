//! What the estimators of a rank were told, written to a file when it ends (`NMAD_OBSERVATIONS`).

use crate::session::Session;
use crate::written;
use nmad_engine::Observations;
use nmad_words::setting::OBSERVATIONS;
use nmad_words::tell_user;
use std::io::Write;

/// Writes the observations of this rank, if the user wants them.
pub(crate) fn write(session: &Session, job: &str) {
    let Some(base) = &session.options.observations else { return };
    let path = written::name(base, job, session.rank());
    let seen = session.node().with(|engine| engine.take_observations());
    let known = |profile: &crate::ProfileInfo| {
        let rail = usize::from(profile.number);
        Some((rail, profile.known.as_ref()?.0.as_ref().clone()))
    };
    let mut rails = Vec::new();
    for (rail, profile) in session.profiles().iter().filter_map(known) {
        rails.resize(rails.len().max(rail + 1), None);
        rails[rail] = Some(profile);
    }
    let text = Observations { rails, seen }.print();
    let written = written::create(OBSERVATIONS.name, &path, session.rank())
        .and_then(|mut file| file.write_all(text.as_bytes()));
    if let Err(error) = written {
        let path = path.display();
        tell_user(format_args!(
            "nmad: NMAD_OBSERVATIONS: cannot write {path}: {error}; is the folder there, on each host?"
        ));
    }
}
