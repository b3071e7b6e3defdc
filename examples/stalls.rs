//! A stream from rank 0 to rank 1, and how long nothing came: for trying out what happens when a rail fails.
//!
//! `stalls LEN WINDOW SECONDS` sends windows of so many messages of LEN bytes. Rank 1 checks them and prints
//! each pause of more than 5 ms with the time at which it ended (seconds since 1970), the longest one, and
//! the rate.

use newmadeleine::{Session, SessionError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Shorter pauses are not told of.
const TOLD: Duration = Duration::from_millis(5);

fn main() -> Result<(), SessionError> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<usize>().unwrap_or(0));
    let mut number = |usual| numbers.next().filter(|&given| given > 0).unwrap_or(usual);
    let (len, window, seconds) = (number(65_536), number(8), number(10));
    let session = Session::open()?;
    let length = Duration::from_secs(seconds as u64);
    match session.rank() {
        0 => send(&session, len.max(8), window, length)?,
        1 => receive(&session, len.max(8), window)?,
        _ => {}
    }
    session.close()
}

/// Sends windows; the last one says so.
fn send(session: &Session, len: usize, window: usize, length: Duration) -> Result<(), SessionError> {
    let (begun, mut count) = (Instant::now(), 0u64);
    let mut is_last = false;
    while !is_last {
        is_last = begun.elapsed() >= length;
        let data: Vec<Vec<u8>> = (0..window).map(|place| message(count + place as u64, len)).collect();
        session.scope(|scope| {
            let requests: Result<Vec<_>, _> = data.iter().map(|data| scope.send(1, 0, data)).collect();
            scope.wait_all(&requests?).map(drop)
        })?;
        session.send(1, 1, &[u8::from(is_last)])?;
        count += window as u64;
    }
    Ok(())
}

fn receive(session: &Session, len: usize, window: usize) -> Result<(), SessionError> {
    let (begun, mut last, mut longest, mut count) = (Instant::now(), Instant::now(), Duration::ZERO, 0u64);
    let mut is_last = [0];
    while is_last[0] == 0 {
        for _ in 0..window {
            let mut data = vec![0; len];
            session.recv(0, 0, &mut data)?;
            assert!(data == message(count, len), "message {count} is damaged or out of order");
            count += 1;
            let pause = last.elapsed();
            if pause > TOLD && count > 1 {
                let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                println!("pause {:.1} ms at {:.3}", pause.as_secs_f64() * 1e3, at.as_secs_f64());
            }
            longest = longest.max(if count > 1 { pause } else { Duration::ZERO });
            last = Instant::now();
        }
        session.recv(0, 1, &mut is_last)?;
    }
    let (ms, rate) = (longest.as_secs_f64() * 1e3, count as f64 * len as f64 / begun.elapsed().as_secs_f64());
    println!("{count} messages of {len} B, longest pause {ms:.1} ms, {:.1} MB/s", rate / 1e6);
    Ok(())
}

/// The message of that number: its number, and bytes that depend on it.
fn message(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; len];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}
