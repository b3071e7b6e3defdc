//! Every rank says who it is and reads what all the others put. Start it with any launcher:
//! `nmad run -n 4 target/debug/examples/whoami`, `mpiexec -n 4 ...`, `srun --mpi=pmi2 -n 4 ...`, or alone.
//!
//! The values are longer than a launcher takes at once and have blanks in them; a second round shows
//! that fences order puts and gets again and again.

use std::process::ExitCode;

use nmad_launch::{Bootstrap, LaunchError, bootstrap};

const LONG: usize = 5000;

fn main() -> ExitCode {
    match whoami() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("whoami: {error}");
            ExitCode::FAILURE
        }
    }
}

fn whoami() -> Result<(), LaunchError> {
    let mut job = bootstrap()?;
    for round in 0..2 {
        let value = card(round, job.rank());
        job.put(&format!("card-{round}-{}", job.rank()), &value)?;
        job.fence()?;
        check(round, &mut *job)?;
    }
    let secret = job.secret().iter().fold(0u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    println!(
        "rank {} of {} in {}: nodes {:?}, secret's checksum {secret:08x}",
        job.rank(),
        job.size(),
        job.job(),
        job.nodes()
    );
    job.finish()
}

fn card(round: u32, rank: u32) -> String {
    format!("round {round}, rank {rank}, 100%: {}", "x y\n".repeat(LONG / 4))
}

fn check(round: u32, job: &mut dyn Bootstrap) -> Result<(), LaunchError> {
    for rank in 0..job.size() {
        let value = job.get(&format!("card-{round}-{rank}"))?;
        if value.as_deref() != Some(&card(round, rank)) {
            job.abort(3, &format!("the card of rank {rank} is wrong in round {round}: {value:?}"));
            std::process::exit(3);
        }
    }
    assert_eq!(job.get("nobody-put-this")?, None);
    Ok(())
}
