//! The program of the README: every rank greets rank 0.

use newmadeleine::{Session, Source};

fn main() -> Result<(), newmadeleine::SessionError> {
    let session = Session::open()?; // rank 0 of 1 without a launcher
    let mut name = [0; 64];
    if session.rank() == 0 {
        for _ in 1..session.size() {
            let message = session.recv(Source::Any, 7, &mut name)?;
            println!("rank {} says {}", message.from, String::from_utf8_lossy(&name[..message.len]));
        }
    } else {
        session.send(0, 7, b"hello over every rail")?;
    }
    session.close()
}
