//! What each rail carried for one message under three strategies: figure 3 of P4, from a trace.

use newmadeleine::{Options, Session};
use nmad_bench::pattern::flow::{Flow, sample};
use nmad_bench::pattern::{BenchError, Pair};
use nmad_bench::plot::{LaneGroup, timeline_svg};
use std::path::Path;
use std::time::Duration;

use super::args::DemoArgs;
use crate::output::say_line;
use crate::trace::{Links, Records, bars};

const LEN: usize = 4 << 20;
const STRATEGIES: [&str; 3] = ["fifo", "iso_split", "auto"];
/// Messages under each strategy; the last one is drawn, when the rails have come up to speed.
const MESSAGES: usize = 3;
/// Between messages, so that nobody confuses them.
const PAUSE: Duration = Duration::from_millis(2);

/// The ranks' part: messages under each strategy. The session writes the trace.
pub(super) fn run(args: &DemoArgs) -> Result<(), BenchError> {
    let session = Session::open_with(&args.driver.of(Options::load()?)?)?;
    let pair = Pair::of(&session)?;
    let mut memory = Vec::new();
    for strategy in STRATEGIES {
        session.set_strategy(None, strategy)?;
        for _ in 0..MESSAGES {
            let flow = Flow { len: LEN, count: 1, in_flight: 1, hints: newmadeleine::Hints::default() };
            sample(pair, flow, &mut memory)?;
            std::thread::sleep(PAUSE);
        }
    }
    session.close()?;
    Ok(())
}

/// Draws what the ranks traced to `trace`.0 and `trace`.1.
pub(super) fn draw(args: &DemoArgs, trace: &Path) -> Result<(), String> {
    let (sender, receiver) = (Records::read(&rank_file(trace, 0))?, Records::read(&rank_file(trace, 1))?);
    let links = Links::of(&[sender.clone(), receiver]);
    let lanes = bars(&sender, &links);
    let messages = lanes.messages(LEN as u64);
    let names = args.rail_names();
    let rates: Vec<String> = lanes.rails().iter().enumerate().map(|rail| rate_of(rail, &names)).collect();
    let groups = STRATEGIES.iter().enumerate().filter_map(|(number, strategy)| {
        let message = messages.get(number * MESSAGES + MESSAGES - 1)?;
        Some(LaneGroup { label: (*strategy).to_string(), rails: message.lanes(&rates) })
    });
    let groups: Vec<LaneGroup> = groups.collect();
    let title = format!("One message of 4 MiB over {}", names.join(" + "));
    let svg = timeline_svg(&title, &groups).map_err(|error| error.to_string())?;
    let path = args.out.join("timeline.svg");
    nmad_words::file::write(&path, svg)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    if !args.json {
        say_line(format_args!("what each rail carried:      {}", path.display()));
        say_line(format_args!("the trace (nmad trace FILE): {}", rank_file(trace, 0).display()));
    }
    Ok(())
}

/// The rate of a rail of the trace: several drivers may use one interface (`tcp/r1`, `udp/r1`); on loopback
/// rails, which all have one name, each is by itself.
fn rate_of((place, name): (usize, &String), rates: &[String]) -> String {
    let interface = name.split_once("/r").and_then(|(_, number)| number.parse().ok());
    rates.get(interface.unwrap_or(place)).cloned().unwrap_or_default()
}

pub(super) fn rank_file(trace: &Path, rank: u32) -> std::path::PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(format!(".{rank}"));
    name.into()
}
