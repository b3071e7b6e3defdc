//! How much a TCP rail costs beside bare sockets, measured in one run, between two processes.
//!
//! ```text
//! pingpong 10.89.0.1                  on one host, then on the other:
//! pingpong 10.89.0.2 10.89.0.1
//! ```
//! Pin each to a core of its own. For each size the two ways are measured in turn, several times; printed
//! are the medians, the ratio with its quartiles, and the best of each, which say most on a machine
//! that does other work too. `NMAD_SIZES=48,65536` measures only these sizes; `NMAD_ENCRYPT=on` encrypts the
//! link of the rail.

mod bare;
mod railed;
mod way;

use nmad_drivers::interface::{Interface, interfaces};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use way::{Way, measure};

/// Port on which the two processes find each other.
const PORT: u16 = 7998;
/// Measurements of each size and way.
const REPEAT: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<IpAddr> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let (&here, there) = arguments.split_first().ok_or("usage: pingpong OWN-ADDRESS [PEER-ADDRESS]")?;
    let mut control = match there {
        [there] => TcpStream::connect((*there, PORT))?,
        _ => TcpListener::bind((here, PORT))?.accept()?.0,
    };
    control.set_nodelay(true)?;
    let first = there.is_empty();
    let interface = interfaces()?
        .into_iter()
        .find(|i| i.address == here)
        .unwrap_or(Interface { address: here, ..Interface::loopback() });
    let mut bare = bare::Bare::open(&mut control, here, first)?;
    let mut rail = railed::Railed::open(&mut control, interface, first)?;
    let mut ways: [&mut dyn Way; 2] = [&mut bare, &mut rail];
    if first {
        println!(
            "| what | bytes | bare | rail | speed, rail / bare (quartiles) | best bare | best rail | ratio |"
        );
        println!("|---|---|---|---|---|---|---|---|");
    }
    let sizes = std::env::var("NMAD_SIZES")
        .unwrap_or("48,4096,65536,262144,1048576,4194304,16777216,67108864".into());
    let sizes: Vec<usize> = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
    for round in ["half round trip, us", "one way, GB/s"] {
        for &len in &sizes {
            let one_way = round.starts_with("one");
            if one_way && len < (64 << 10) {
                continue;
            }
            let times = measure(&mut ways, &mut control, first, len, one_way, REPEAT)?;
            if first {
                print(round, len, one_way, &times);
            }
        }
    }
    // Neither side ends while the other still measures.
    control.write_all(&[0])?;
    control.read_exact(&mut [0])?;
    Ok(())
}

/// One line of the table. Times are in nanoseconds per message.
fn print(what: &str, len: usize, one_way: bool, times: &[[f64; 2]]) {
    let sorted = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all
    };
    let bare = sorted(times.iter().map(|t| t[0]).collect());
    let rail = sorted(times.iter().map(|t| t[1]).collect());
    // As speed, so that above one is better for the rail.
    let ratio = sorted(times.iter().map(|t| t[0] / t[1]).collect());
    let show = |ns: f64| if one_way { len as f64 / ns } else { ns / 1000.0 };
    let at = |all: &[f64], part: usize| all[(all.len() - 1) * part / 4];
    println!(
        "| {what} | {len} | {:.2} | {:.2} | {:.3} ({:.3} to {:.3}) | {:.2} | {:.2} | {:.3} |",
        show(at(&bare, 2)),
        show(at(&rail, 2)),
        at(&ratio, 2),
        at(&ratio, 1),
        at(&ratio, 3),
        show(bare[0]),
        show(rail[0]),
        bare[0] / rail[0],
    );
}
