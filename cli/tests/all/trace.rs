//! `nmad trace`: exports, read back by parsers that know nothing of what wrote them.

use crate::command::{Ended, nmad, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

fn call(at: u64, name: &str, until: u64) -> String {
    format!("{{\"at_ns\":{at},\"call\":\"{name}\",\"until_ns\":{until},\"thread\":0}}\n")
}

fn rail(at: u64, what: &str, peer: u32, number: u32, text: &str) -> String {
    format!(
        "{{\"at_ns\":{at},\"rail\":\"tcp/r0#0\",\"what\":\"{what}\",\"peer\":{peer},\"number\":{number},\
         \"len\":64,\"text\":\"{text}\"}}\n"
    )
}

/// Two ranks: 24 B from rank 0, and 300 B by rendezvous back, between which they compute.
fn job(folder: &Path) {
    let eager = "packet | eager 24 B context 0 tag 0x7 seq 0";
    let rts = "packet | rts 300 B context 0 tag 0x8 seq 0";
    let receipt = "{\"at_ns\":60000,\"message\":\"rendezvous\",\"to\":0,\"context\":0,\"tag\":8,\"seq\":0,\
                   \"len\":300,\"eager_max\":100,\"predicted_ns\":15000,\"actual_ns\":20000,\
                   \"carried\":[[\"tcp/r0#0\",300]]}\n";
    let landed = rail(80_000, "Landed", 1, 3, "").replace("\"len\":64", "\"len\":300");
    let zero = [
        call(1_000, "MPI_Send", 3_000),
        rail(2_000, "PostPacket", 1, 1, eager),
        call(50_000, "MPI_Recv", 82_000),
        landed,
        call(90_000, "MPI_Allreduce", 95_000),
    ];
    let one = [
        call(1_500, "MPI_Recv", 12_000),
        rail(11_000, "Arrived", 0, 1, eager),
        call(59_000, "MPI_Send", 81_000),
        rail(61_000, "PostPacket", 0, 2, rts),
        receipt.to_string(),
        call(91_000, "MPI_Allreduce", 95_000),
    ];
    for (rank, lines) in [(0, zero.to_vec()), (1, one.to_vec())] {
        let head = format!("{{\"trace\":2,\"rank\":{rank},\"size\":2}}\n");
        let end = format!("{{\"end\":{},\"dropped\":0}}\n", lines.len());
        fs::write(folder.join(format!("trace.{rank}")), head + &lines.concat() + &end).expect("written");
    }
}

/// Runs `nmad trace` on the two ranks.
pub(crate) fn trace(words: &[&str]) -> (tempfile::TempDir, Ended) {
    let folder = tempfile::tempdir().expect("a folder");
    job(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let words: Vec<String> = words.iter().map(|word| word.replace("DIR", &at(""))).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let file = at("");
    let ended = nmad(&[&["trace", &file], &words[..]].concat());
    (folder, ended)
}

/// A trace for Paraver, as its description has it: the fields of the header, and the records by kind.
struct Prv {
    end: u64,
    tasks: Vec<usize>,
    records: BTreeMap<u32, Vec<Vec<u64>>>,
}

fn prv(text: &str) -> Prv {
    let (header, body) = text.split_once('\n').expect("a header");
    let header = header.strip_prefix("#Paraver (").expect("the mark of the format");
    let rest = header.split_once("):").expect("a date").1;
    let (end, rest) = rest.split_once("_ns:").expect("an end in nanoseconds");
    // nodes(cpus,...):applications:tasks(threads:node,...)
    let (nodes, rest) = rest.split_once("):").expect("nodes");
    let tasks = rest.split_once(':').expect("one application").1;
    let tasks = tasks.split_once('(').expect("tasks").1.trim_end_matches(')');
    let threads = |task: &str| task.split_once(':').expect("a node").0.parse().expect("a number");
    let tasks: Vec<usize> = tasks.split(',').map(threads).collect();
    assert_eq!(nodes, format!("{}({}", tasks.len(), vec!["1"; tasks.len()].join(",")));
    let mut records: BTreeMap<u32, Vec<Vec<u64>>> = BTreeMap::new();
    for line in body.lines() {
        let mut fields = line.split(':').map(|field| field.parse::<u64>().expect("a number"));
        let kind = fields.next().expect("a kind") as u32;
        records.entry(kind).or_default().push(fields.collect());
    }
    Prv { end: end.parse().expect("a number"), tasks, records }
}

#[test]
fn paraver_reads_states_events_and_messages() {
    let (folder, ended) = trace(&["--paraver", "DIR/p"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("it is there");
    let Prv { end, tasks, records } = prv(&read("p.prv"));
    assert_eq!((end, tasks), (94_000, vec![2, 2]));
    // cpu, application, task, thread, begin, end, state: states of a thread follow each other.
    let of_task = |task: u64| records[&1].iter().filter(move |record| record[2] == task);
    let states: Vec<(u64, u64, u64)> = of_task(1).map(|r| (r[4], r[5], r[6])).collect();
    assert_eq!(
        states,
        [(0, 2_000, 4), (2_000, 49_000, 1), (49_000, 81_000, 3), (81_000, 89_000, 1), (89_000, 94_000, 13)]
    );
    // Sender, its times, receiver, its times, bytes and tag.
    let [first, second] = &records[&3][..] else { panic!("two messages: {records:?}") };
    assert_eq!(first[2..], [1, 1, 1_000, 1_000, 2, 1, 2, 1, 10_000, 10_000, 24, 7][..]);
    assert_eq!((second[2], second[4], second[12], second[13]), (2, 60_000, 300, 8));
    assert!(records.values().flatten().all(|record| record.iter().all(|field| *field < 100_000_000)));
    let pcf = read("p.pcf");
    let colours = pcf.split_once("STATES_COLOR\n").expect("colours").1;
    for state in [1, 3, 4, 13] {
        assert!(colours.lines().any(|line| line.starts_with(&format!("{state}    {{"))), "{pcf}");
    }
    // Every value of an event of a call has a name.
    let calls = pcf.split("EVENT_TYPE\n").find(|part| part.contains("function of MPI")).expect("calls");
    for record in records[&2].iter().filter(|record| record[5] == 50_000_001) {
        assert!(
            calls.lines().any(|line| line.starts_with(&format!("{}    ", record[6]))),
            "{record:?}: {calls}"
        );
    }
    let row = read("p.row");
    let levels: Vec<(&str, usize)> = row
        .lines()
        .filter_map(|line| line.strip_prefix("LEVEL ")?.split_once(" SIZE "))
        .map(|(level, size)| (level, size.parse().expect("a number")))
        .collect();
    assert_eq!(levels, [("NODE", 2), ("TASK", 2), ("THREAD", 4)]);
    assert!(row.contains("rank 1, rails"), "{row}");
}

/// The lines of an archive, as the tool of its library prints them; none: it is not installed.
fn printed(archive: &Path, words: &[&str]) -> Option<Vec<String>> {
    let ended = Command::new("otf2-print").args(words).arg(archive).output().ok()?;
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{text}{}", String::from_utf8_lossy(&ended.stderr));
    Some(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect())
}

#[test]
fn otf2_gets_regions_messages_and_counters() {
    let (folder, ended) = trace(&["--otf2", "DIR/o"]);
    if ended.err.contains("none was found") {
        assert!(ended.code == Some(1) && ended.err.contains("libopen-trace-format2-10"), "{}", ended.err);
        return eprintln!("skipped: there is no library of OTF2");
    }
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
    let archive = folder.path().join("o/traces.otf2");
    let Some(events) = printed(&archive, &[]) else { return eprintln!("skipped: there is no otf2-print") };
    let has = |line: &str| assert!(events.iter().any(|other| other == line), "{line}: {events:#?}");
    has("ENTER 0 0 Region: \"MPI_Send\" <0>");
    has("LEAVE 1 80000 Region: \"MPI_Send\" <0>");
    let of_world = "Communicator: \"MPI_COMM_WORLD\" <0>";
    has(&format!("MPI_SEND 0 1000 Receiver: 1 (\"rank 1, thread 0\" <1>), {of_world}, Tag: 7, Length: 24"));
    has(&format!("MPI_RECV 0 79000 Sender: 1 (\"rank 1, thread 0\" <1>), {of_world}, Tag: 8, Length: 300"));
    has("ADDITIONAL ATTRIBUTES: (\"protocol\" <0>; STRING; \"rendezvous\" <1>)");
    has("METRIC 0 1000 Metric: 0, 1 Value: (\"bytes on tcp/r0#0\" <0>; UINT64; 64)");
    has("METRIC 0 10000 Metric: 0, 1 Value: (\"bytes on tcp/r0#0\" <0>; UINT64; 0)");
    let definitions = printed(&archive, &["-G"]).expect("as before");
    let ranks = definitions.iter().filter(|line| line.starts_with("LOCATION_GROUP")).count();
    assert!(ranks == 2 && definitions.iter().any(|line| line.contains("Length: 94000,")), "{definitions:#?}");
    // An archive is never written over, and a folder that takes none is known before a run.
    let name = folder.path().to_str().expect("text");
    let again = nmad(&["trace", name, "--otf2", &format!("{name}/o")]);
    assert!(again.code == Some(1) && again.err.contains("is there already"), "{}", again.err);
    let marker = folder.path().join("ran");
    let touch = marker.to_str().expect("text");
    let early = nmad(&["trace", "--otf2", "/proc/o", "--", "touch", touch]);
    assert!(early.code == Some(1) && early.err.contains("/proc/o") && !marker.exists(), "{}", early.err);
}

#[test]
fn the_report_is_one_file_with_all_figures() {
    let (folder, ended) = trace(&["--html", "DIR/r.html", "--summary"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("rendezvous") && ended.out.contains("-25.0 %"), "{}", ended.out);
    let path = folder.path().join("r.html");
    let text = fs::read_to_string(&path).expect("written");
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let page = roxmltree::Document::parse_with_options(&text, options).expect("well-formed");
    let with_address =
        |node: &roxmltree::Node<'_, '_>| ["src", "href"].iter().any(|name| node.attribute(*name).is_some());
    assert!(!page.descendants().any(|node| with_address(&node)), "it needs no network");
    let tables: Vec<_> = page.descendants().filter(|node| node.has_tag_name("table")).collect();
    let rows =
        |table: &roxmltree::Node<'_, '_>| table.children().filter(|node| node.has_tag_name("tr")).count() - 1;
    assert_eq!(tables.iter().map(rows).collect::<Vec<_>>(), [2, 2, 2]);
    let svg = ("http://www.w3.org/2000/svg", "rect");
    let bars = page.descendants().filter(|node| node.has_tag_name(svg)).count();
    let lines = page.descendants().filter(|node| node.has_tag_name((svg.0, "line"))).count();
    // Ten of calls and of computing between them, and one for the packet of which the end is known.
    assert_eq!((bars, lines), (11, 2));
    let names = page.descendants().find(|node| node.attribute("id") == Some("names")).expect("names");
    let names: Vec<&str> = names.children().filter_map(|node| node.text()).collect();
    assert_eq!(names, ["rank 0", "tcp/r0#0", "rank 1"], "rails that carried something are rows");
    let titles = page.descendants().filter(|node| node.has_tag_name((svg.0, "title")));
    assert_eq!(titles.count(), bars + lines, "each has a text for the pointer");
    assert!(!text.contains("longest are drawn"), "nothing is left out");
    browse(&path);
}

/// Ten seconds of opening links and one millisecond of a program: the report shows the program, and says of
/// which command it is, when it began, and how many messages it does not show.
#[test]
fn the_report_begins_where_the_program_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = 10_000_000_000;
    for rank in 0..2 {
        let mut text = format!(
            "{{\"trace\":2,\"rank\":{rank},\"size\":2,\"command\":\"./ring <9>\",\"began\":951782400}}\n"
        );
        text += &rail(1_000, "Up", 1 - rank, 0, "");
        text += &call(start, "MPI_Barrier", start + 1_000_000);
        for number in 0..1_200 {
            let frame = format!("packet | eager 24 B context 0 tag 0x7 seq {number}");
            let what = if rank == 0 { "PostPacket" } else { "Arrived" };
            text += &rail(start + 100 + 10 * number + u64::from(rank), what, 1 - rank, number as u32, &frame);
        }
        fs::write(folder.path().join(format!("trace.{rank}")), text + "{\"end\":1202,\"dropped\":0}\n")
            .unwrap();
    }
    let html = folder.path().join("r.html");
    let ended = nmad(&["trace", folder.path().to_str().unwrap(), "--html", html.to_str().unwrap(), "--text"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.trim_start().starts_with("-9999999.000 us"), "{}", &ended.out[..200]);
    let text = fs::read_to_string(html).expect("written");
    for wanted in [
        "Trace of 2 ranks, 1.00 ms",
        "data-ns=\"1000000\"",
        "<dd>./ring &lt;9&gt;</dd>",
        "<dd>2000-02-29T00:00:00.000Z</dd>",
        "Of 1200 messages the 1000 longest are drawn.",
        "MPI_Barrier: from 0 us on, 1000 us long",
    ] {
        assert!(text.contains(wanted), "{wanted}");
    }
    assert_eq!(text.matches("<line ").count(), 1_000);
}

/// Opens the page in a browser without a screen, where there is one: the page has the tables there.
fn browse(path: &Path) {
    let names = ["chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"];
    let started = names.iter().find_map(|name| {
        let page = format!("file://{}", path.display());
        let words = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", &page];
        Command::new(name).args(words).output().ok()
    });
    let Some(shown) = started else { return eprintln!("skipped: there is no Chromium") };
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("<td class=\"w\">rendezvous</td>"), "{shown}");
}

#[test]
fn a_part_of_the_time_can_be_shown() {
    let (_folder, ended) = trace(&["--from", "50us", "--to", "85us"]);
    assert!(ended.out.contains("rts 300 B") && !ended.out.contains("eager 24 B"), "{}", ended.out);
    let (_folder, wrong) = trace(&["--from", "soon"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("2ms"), "{}", wrong.err);
}

#[test]
fn a_part_of_the_time_can_be_drawn() {
    // The first message is on its rail from 2 to 11 us; the trace begins at 1 us.
    let packets = |from: &str, to: &str| {
        let (folder, ended) = trace(&["--svg", "DIR/r.svg", "--from", from, "--to", to]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let text = fs::read_to_string(folder.path().join("r.svg")).expect("written");
        text.matches("64 B").count()
    };
    assert_eq!((packets("0us", "20us"), packets("20us", "90us")), (1, 0));
}

#[test]
fn a_trace_that_was_cut_short_is_shown_with_a_warning_and_is_no_model() {
    let folder = tempfile::tempdir().expect("a folder");
    job(folder.path());
    let file = folder.path().join("trace.1");
    let text = fs::read_to_string(&file).expect("written");
    fs::write(&file, &text[..text.len() - 60]).expect("written");
    let name = folder.path().to_str().expect("text");
    let ended = nmad(&["trace", name, "--summary"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains("trace.1 is cut short") && ended.out.contains("eager"), "{}", ended.err);
    let model = nmad(&["model", name, "--rails", "1gbit"]);
    assert!(model.code == Some(2) && model.err.contains("not whole"), "{}", model.err);
}

#[test]
fn a_run_is_predicted_and_the_error_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    job(folder.path());
    let name = folder.path().to_str().expect("text");
    let words = ["model", name, "--rails", "1gbit", "--what-if", "eager=1MiB"];
    let ended = nmad(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("against the trace") && ended.out.contains("eager=1MiB"), "{}", ended.out);
    let lines = nmad(&[&words[..], &["--json"]].concat()).json();
    assert_eq!((lines.len(), &lines[0]["traced"]["duration_us"]), (2, &94.0.into()));
}

#[test]
fn a_command_is_run_and_its_trace_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let html = folder.path().join("r.html");
    let html = html.to_str().expect("text");
    let program = env!("CARGO_BIN_EXE_nmad");
    let bench = [program, "run", "-n", "2", "--timeout", "60", program, "bench", "latency", "--size", "8"];
    let words = [&["trace", "--summary", "--html", html, "--"], &bench[..], &["--repeat", "2"]].concat();
    let ended = nmad(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("protocols") && ended.out.contains("shm#0"), "{}", ended.out);
    assert!(fs::read_to_string(html).expect("written").contains("shm#0"));
    // What cannot be written is known before anything runs.
    let marker = folder.path().join("ran");
    let touch = ["touch", marker.to_str().expect("text")];
    let ended = nmad(&[&["trace", "--html", "/no/such/r.html", "--"], &touch[..]].concat());
    assert!(ended.code == Some(1) && ended.err.contains("/no/such/r.html"), "{}", ended.err);
    assert!(!marker.exists());
    let ended = nmad(&[&["trace", "--summary", "--"], &touch[..]].concat());
    assert!(ended.err.contains("no trace") && marker.exists(), "{}", ended.err);
}

#[test]
fn a_trace_changes_no_protocol() {
    let folder = tempfile::tempdir().expect("a folder");
    let protocols = |traced: bool| {
        let program = env!("CARGO_BIN_EXE_nmad");
        let mut command = Command::new(program);
        command.args(["run", "-n", "2", "--timeout", "60", program, "explain", "--json"]);
        if traced {
            command.env("NMAD_TRACE", folder.path());
        }
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        ended.json().remove(0)["rails"].take()
    };
    let plain = protocols(false);
    assert_eq!(plain, protocols(true));
    assert!(folder.path().join("trace.1").is_file());
}

#[test]
fn a_full_disk_costs_the_trace_and_nothing_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().to_str().expect("text");
    let program = env!("CARGO_BIN_EXE_nmad");
    let bench = format!("{program} run -n 2 --timeout 60 {program} bench latency --size 8 --repeat 2 --json");
    // A disk of its own, of which the beginning of the traces takes the half.
    let script = format!(
        "mount -t tmpfs -o size=64k none {name} || exit 77; NMAD_TRACE={name}/t {bench}; code=$?; \
         {program} trace {name}/t --summary; exit $code"
    );
    let ended = run(Command::new("unshare").args(["-rm", "sh", "-c", &script]));
    if ended.err.contains("unshare") || ended.code == Some(77) {
        return eprintln!("skipped: {}", ended.err);
    }
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("\"bench\":\"latency\""), "{}", ended.out);
    assert!(ended.err.contains("cut short: No space left"), "{}", ended.err);
    assert!(ended.err.contains("what is there is shown") && ended.out.contains("protocols"), "{}", ended.err);
}

#[test]
fn a_trace_that_cannot_be_written_is_known_before_the_run() {
    let program = env!("CARGO_BIN_EXE_nmad");
    let mut command = Command::new(program);
    command.args(["run", "-n", "2", "--timeout", "60", program, "bench", "latency", "--size", "8"]);
    let ended = run(command.env("NMAD_TRACE", "/proc/t"));
    assert!(ended.code != Some(0) && ended.out.is_empty(), "{}", ended.out);
    // The rank that finds it first ends the job.
    assert!(ended.err.contains("NMAD_TRACE") && ended.err.contains("/proc/t."), "{}", ended.err);
}
