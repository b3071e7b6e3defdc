use super::*;
use crate::plan::Cell;
use crate::report::FailedRow;
use crate::store::tests::cell;
use crate::verdict::tests::{judged, rounds};
use std::process::Command;

/// Cells of two patterns, faster, equal and slower, one of them without a peer, and names that look like
/// markup.
fn sample() -> Report {
    let mut figures = Vec::new();
    for (bytes, ours) in [(0, 0.2), (8, 1.0), (65536, 5.0)] {
        let cell = cell("pingpong", bytes);
        figures.extend(rounds("ours", &cell, [ours, ours * 1.01, ours]));
        figures.extend(rounds("openmpi", &cell, [1.0, 1.0, 1.01]));
    }
    let window = Cell { variant: "w64".into(), ..cell("oneway", 8) };
    figures.extend(rounds("ours", &window, [1.0, 1.0, 1.0]));
    let mut report = judged(figures);
    report.missing.push("mpich: pip ended with <3> & \"no\" network".into());
    let why = "said nothing for 30 s".into();
    report.failed.push(FailedRow { who: "mpich".into(), cell: cell("bcast", 8), why });
    report
}

#[test]
fn the_page_is_well_formed_and_has_everything() {
    let page = html(&sample());
    for part in [
        "geometric mean of 3 cells; 0 of them",
        "node2 pingpong 64 KiB",
        "mpich: pip ended with &lt;3&gt; &amp; &quot;no&quot; network",
        "said nothing for 30 s",
        "oneway w64",
        ">5.00<",
        "a&lt;b",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for foreign in ["<script", "http-equiv", "src=", "href="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // Each picture stands for itself; as XML, the rest is checked by a browser.
    let svg = &page[page.find("<svg").unwrap()..page.find("</svg>").unwrap() + 6];
    let parsed = roxmltree::Document::parse(svg).unwrap();
    let cells = parsed.descendants().filter(|node| node.attribute("class") == Some("cell quiet")).count();
    assert_eq!(cells, 4);
    let fills: Vec<_> = parsed.descendants().filter_map(|node| node.attribute("fill")).collect();
    assert!(
        fills.contains(&"#c85000") && fills.contains(&"#2166ac") && fills.contains(&"#dddddd"),
        "{fills:?}"
    );
}

#[test]
fn a_report_without_peers_says_that_there_is_no_verdict() {
    let page = html(&judged(rounds("ours", &cell("pingpong", 8), [1.0, 1.0, 1.0])));
    assert!(page.contains("No verdict") && page.contains("<svg"), "{page}");
}

/// A browser that runs without a display.
fn chromium() -> Option<&'static str> {
    let is_there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success());
    ["chromium", "chromium-browser", "google-chrome", "chrome"].into_iter().find(is_there)
}

#[test]
fn chromium_lays_the_page_out() {
    let Some(browser) = chromium() else {
        eprintln!("skipped: there is no chromium here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    // The page has no script; this one, for the test, writes down where the browser has put the cells.
    let probe = "<script>addEventListener('load', () => { const boxes = \
    [...document.querySelectorAll('g.cell rect')]\
        .map(cell => cell.getBoundingClientRect()).filter(box => box.width > 30 && box.height > 15 && \
        box.left > 150);\
        document.body.dataset.cells = boxes.length; document.body.dataset.title = document.title; \
        });</script></body>";
    std::fs::write(&file, html(&sample()).replace("</body>", probe)).unwrap();
    let mut command = Command::new("timeout");
    command.args(["60", browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.path().join("user").display()));
    let ended = command.arg(format!("file://{}", file.display())).output().unwrap();
    let dom = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(dom.contains("data-cells=\"4\""), "{dom}");
    assert!(dom.contains("data-title=\"MAD-MPI beside other MPIs\""), "{dom}");
}
