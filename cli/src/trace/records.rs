//! One rank's trace: an object of JSON on each line, as the session and `nmad_drivers::around::trace` write
//! it.

use nmad_launch::local::stamp;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// One thing that passed between the engine and a rail.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Record {
    /// When, on a clock that all rails and ranks of one machine share.
    pub(crate) at_ns: u64,
    /// Name of the rail.
    pub(crate) rail: String,
    /// The recorded event.
    pub(crate) what: What,
    /// The other rank.
    pub(crate) peer: u32,
    /// Number of the packet or chunk on its link.
    pub(crate) number: u32,
    /// Bytes.
    pub(crate) len: u64,
    /// What a packet carries, or why a link was lost.
    #[serde(default)]
    pub(crate) text: String,
}

/// See `nmad_drivers::around::trace::What`; what a later version may add is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) enum What {
    PostPacket,
    PostChunk,
    Sent,
    Arrived,
    Landed,
    Up,
    #[serde(untagged)]
    Other(String),
}

impl What {
    pub(crate) fn name(&self) -> &str {
        match self {
            What::PostPacket => "PostPacket",
            What::PostChunk => "PostChunk",
            What::Sent => "Sent",
            What::Arrived => "Arrived",
            What::Landed => "Landed",
            What::Up => "Up",
            What::Other(name) => name,
        }
    }
}

/// A call of MPI.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Call {
    pub(crate) at_ns: u64,
    /// The name of the function.
    pub(crate) call: String,
    pub(crate) until_ns: u64,
    /// The rank that it receives from.
    pub(crate) from: Option<u32>,
    pub(crate) thread: u32,
    /// Where ranks may share cores: the core at its end, and for how long its thread had been ready without a
    /// core at begin and end.
    pub(crate) core: Option<u32>,
    pub(crate) delayed_ns: Option<[u64; 2]>,
}

/// The machine of a rank that may share its cores with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its boot id.
    pub(crate) name: String,
    /// Cores that the rank may use.
    pub(crate) cores: usize,
    /// The period of its scheduler tick.
    pub(crate) tick_ns: u64,
}

impl Call {
    /// Whether its thread had a core nearly all the time, as far as that is known.
    pub(crate) fn had_core(&self) -> bool {
        let delayed_ns = self.delayed_ns.map_or(0, |[from, until]| until.saturating_sub(from));
        delayed_ns * 10 <= self.until_ns.saturating_sub(self.at_ns)
    }

    /// The function without prefix, and without the ending that large counts have: `Send` for `MPI_Send_c`.
    pub(crate) fn function(&self) -> &str {
        function(&self.call)
    }
}

/// The same of a name.
pub(crate) fn function(name: &str) -> &str {
    let name = name.strip_prefix("MPI_").unwrap_or(name);
    name.strip_suffix("_c").unwrap_or(name)
}

/// An access of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Access {
    pub(crate) at_ns: u64,
    /// `read` or `write`.
    pub(crate) access: String,
    /// The path of the file.
    pub(crate) file: String,
    /// How it went.
    pub(crate) way: String,
    /// The ranks that called the file system for it.
    pub(crate) owners: Vec<u32>,
    pub(crate) pieces: u64,
    pub(crate) len: u64,
    pub(crate) predicted_ns: u64,
    pub(crate) until_ns: u64,
}

/// How a message went that was long enough for a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Receipt {
    /// When its way was decided.
    pub(crate) at_ns: u64,
    /// Its protocol.
    pub(crate) message: String,
    pub(crate) to: u32,
    pub(crate) context: u32,
    pub(crate) tag: u64,
    pub(crate) seq: u32,
    pub(crate) len: u64,
    /// Longest message that did not ask then.
    pub(crate) eager_max: u64,
    pub(crate) predicted_ns: u64,
    pub(crate) actual_ns: u64,
    /// Rails and bytes.
    pub(crate) carried: Vec<(String, u64)>,
}

/// A line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Rail(Record),
    Call(Call),
    Access(Access),
    Message(Receipt),
    Head {
        trace: u32,
        rank: u32,
        #[serde(default)]
        command: String,
        #[serde(default)]
        began: Option<u64>,
        machine: Option<String>,
        #[serde(default)]
        cores: usize,
        #[serde(default)]
        tick_ns: u64,
    },
    End {
        end: u64,
        dropped: u64,
    },
}

/// All that one rank wrote, each kind in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Records {
    /// Name of the file, without its folder.
    pub(crate) name: String,
    pub(crate) rank: u32,
    /// The program with its arguments; empty in traces of older versions.
    pub(crate) command: String,
    /// When the session was opened (UTC); empty in traces of older versions.
    pub(crate) date: String,
    /// None: its cores are its own, or an older version wrote the trace.
    pub(crate) machine: Option<Machine>,
    pub(crate) list: Vec<Record>,
    pub(crate) calls: Vec<Call>,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) accesses: Vec<Access>,
    /// Calls, receipts and accesses of the beginning that were too many to keep.
    pub(crate) dropped: u64,
    /// Why the end is missing, if it is.
    pub(crate) cut: Option<String>,
}

/// The form of traces that this program reads.
const FORM: u32 = 2;

impl Records {
    pub(crate) fn read(path: &Path) -> Result<Records, String> {
        let text = std::fs::read(path).map_err(|error| {
            format!(
                "cannot read {}: {error} (NMAD_TRACE=FILE makes each rank write FILE.RANK)",
                path.display()
            )
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A file that was cut short may end within a letter.
        Records::parse(name, &String::from_utf8_lossy(&text))
            .map_err(|why| format!("{}: {why}", path.display()))
    }

    pub(crate) fn parse(name: String, text: &str) -> Result<Records, String> {
        let rank = name.rsplit('.').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let mut all = Records {
            name,
            rank,
            command: String::new(),
            date: String::new(),
            machine: None,
            list: Vec::new(),
            calls: Vec::new(),
            receipts: Vec::new(),
            accesses: Vec::new(),
            dropped: 0,
            cut: None,
        };
        let (mut has_head, mut has_end) = (false, false);
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
        while let Some((number, line)) = lines.next() {
            match serde_json::from_str(line) {
                Ok(Line::Rail(record)) => all.list.push(record),
                Ok(Line::Call(call)) => all.calls.push(call),
                Ok(Line::Access(access)) => all.accesses.push(access),
                Ok(Line::Message(receipt)) => all.receipts.push(receipt),
                Ok(Line::Head { trace: FORM, rank, command, began, machine, cores, tick_ns }) => {
                    all.machine = machine.map(|name| Machine { name, cores, tick_ns });
                    let date = began.map(|seconds| stamp::text(Duration::from_secs(seconds)));
                    (all.rank, all.command, all.date) = (rank, command, date.unwrap_or_default());
                    has_head = true;
                }
                Ok(Line::Head { trace, .. }) => {
                    return Err(format!("it has the form {trace}, and this program reads {FORM}"));
                }
                Ok(Line::End { end, dropped }) => {
                    has_end = all.count() as u64 == end;
                    all.dropped = dropped;
                }
                Err(_) if has_head && lines.peek().is_none() => {
                    all.cut = Some(format!("line {} breaks off", number + 1));
                }
                Err(_) => return Err(format!("line {} is no trace", number + 1)),
            }
        }
        if has_head && !has_end && all.cut.is_none() {
            all.cut = Some(match all.count() {
                0 => "the rank has not ended, or was killed before it could write".into(),
                count => format!("it ends after {count} records"),
            });
        }
        // Rails are written one after the other, calls when they end, receipts when messages end.
        all.list.sort_by_key(|record| record.at_ns);
        all.calls.sort_by_key(|call| call.at_ns);
        all.receipts.sort_by_key(|receipt| receipt.at_ns);
        all.accesses.sort_by_key(|access| access.at_ns);
        Ok(all)
    }

    fn count(&self) -> usize {
        self.list.len() + self.calls.len() + self.receipts.len() + self.accesses.len()
    }

    /// Names of the rails, sorted.
    pub(crate) fn rails(&self) -> Vec<String> {
        let rails: BTreeSet<&str> = self.list.iter().map(|record| record.rail.as_str()).collect();
        rails.into_iter().map(str::to_string).collect()
    }

    /// The first and the last time; none: it is empty.
    pub(crate) fn span_ns(&self) -> Option<(u64, u64)> {
        let starts = [
            self.list.first().map(|record| record.at_ns),
            self.calls.first().map(|call| call.at_ns),
            self.receipts.first().map(|receipt| receipt.at_ns),
        ];
        let ends = [
            self.list.last().map(|record| record.at_ns),
            self.calls.iter().map(|call| call.until_ns).max(),
            self.receipts.last().map(|receipt| receipt.at_ns),
        ];
        Some((starts.into_iter().flatten().min()?, ends.into_iter().flatten().max()?))
    }

    /// Moves all times by this difference of clocks.
    pub(crate) fn shift(&mut self, by_ns: i64) {
        let shift = |at_ns: &mut u64| *at_ns = at_ns.saturating_add_signed(by_ns);
        self.list.iter_mut().for_each(|record| shift(&mut record.at_ns));
        self.receipts.iter_mut().for_each(|receipt| shift(&mut receipt.at_ns));
        self.calls.iter_mut().for_each(|call| {
            shift(&mut call.at_ns);
            shift(&mut call.until_ns);
        });
        self.accesses.iter_mut().for_each(|access| {
            shift(&mut access.at_ns);
            shift(&mut access.until_ns);
        });
    }
}

/// The first and the last time of all ranks; none: there is nothing.
pub(crate) fn span_ns(all: &[Records]) -> Option<(u64, u64)> {
    let spans = || all.iter().filter_map(Records::span_ns);
    Some((spans().map(|span| span.0).min()?, spans().map(|span| span.1).max()?))
}

/// From when to when the program ran: its calls of MPI; without any, what its messages put on rails. The
/// opening of links and the agreement of ranks before that are not the program's. None: there is nothing.
pub(crate) fn program_ns(all: &[Records]) -> Option<(u64, u64)> {
    let calls = || all.iter().flat_map(|rank| &rank.calls);
    let starts = calls().map(|call| call.at_ns).min().zip(calls().map(|call| call.until_ns).max());
    let is_traffic = |record: &&Record| !matches!(record.what, What::Up | What::Other(_));
    let traffic = || all.iter().flat_map(|rank| &rank.list).filter(is_traffic).map(|record| record.at_ns);
    starts.or_else(|| traffic().min().zip(traffic().max())).or_else(|| span_ns(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_put_in_order() {
        let text = r#"{"at_ns":20,"rail":"tcp/r0","what":"Sent","peer":1,"number":3,"len":8,"text":""}
            {"at_ns":10,"rail":"tcp/r1","what":"Connect","peer":1,"number":0,"len":0}"#;
        let records = Records::parse("t.3".into(), text).unwrap();
        assert_eq!(records.list[0].what, What::Other("Connect".into()));
        assert_eq!(records.list[1].what, What::Sent);
        assert_eq!(records.rails(), ["tcp/r0", "tcp/r1"]);
        assert_eq!((records.rank, records.cut), (3, None));
    }

    #[test]
    fn what_is_no_trace_says_which_line() {
        let error = Records::parse("t".into(), "\n{\"at_ns\":1}\n{}").unwrap_err();
        assert!(error.starts_with("line 2 is no trace"), "{error}");
        let error = Records::parse("t".into(), r#"{"trace":9,"rank":0,"size":1}"#).unwrap_err();
        assert!(error.contains("form 9"), "{error}");
    }

    #[test]
    fn a_trace_that_was_cut_short_is_read_as_far_as_it_goes_and_says_so() {
        let head = r#"{"trace":2,"rank":5,"size":8}"#;
        let call = r#"{"at_ns":1,"call":"MPI_Send","until_ns":9,"thread":0}"#;
        let whole = format!("{head}\n{call}\n{{\"end\":1,\"dropped\":0}}\n");
        assert_eq!(Records::parse("t".into(), &whole).unwrap().cut, None);
        for (text, count, why) in [
            (format!("{head}\n{call}\n{}", &call[..30]), 1, "line 3 breaks off"),
            (format!("{head}\n{call}\n"), 1, "after 1 records"),
            (format!("{head}\n"), 0, "killed"),
            (format!("{head}\n{{\"end\":1,\"dropped\":0}}\n"), 0, "killed"),
        ] {
            let records = Records::parse("t".into(), &text).unwrap();
            assert_eq!((records.rank, records.calls.len()), (5, count));
            assert!(records.cut.as_ref().is_some_and(|cut| cut.contains(why)), "{text}: {records:?}");
        }
    }
}
