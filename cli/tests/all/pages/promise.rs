//! Whether a command printed what a page promises.

/// Whether `printed` has the lines of `promised`, one after the other; lengths of blanks make no difference.
/// `...` in a line of `promised` stands for any text, and alone in a line for any number of lines. With other
/// figures: a number stands for any number.
pub(super) fn is_kept(promised: &str, printed: &str, with_other_figures: bool) -> bool {
    let plain = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let line = words.join(" ");
        if with_other_figures { without_figures(&line) } else { line }
    };
    let promised: Vec<String> = promised.lines().map(plain).collect();
    let printed: Vec<String> = printed.lines().map(plain).collect();
    let mut rest = &printed[..];
    for group in promised.split(|line| line == "...").filter(|group| !group.is_empty()) {
        let fits = |window: &[String]| window.iter().zip(group).all(|(line, wanted)| agrees(wanted, line));
        let Some(place) = rest.windows(group.len()).position(fits) else { return false };
        rest = &rest[place + group.len()..];
    }
    true
}

/// Whether the parts of `wanted` between its `...` stand in `text`, in their order.
pub(super) fn contains(text: &str, wanted: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    agrees(&format!("...{wanted}..."), &words.join(" "))
}

/// Whether a line has the parts of `wanted` between its `...`, in their order.
fn agrees(wanted: &str, line: &str) -> bool {
    let mut parts = wanted.split("...");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

/// A line with `0` for each number, whatever its sign, digits and fraction.
fn without_figures(line: &str) -> String {
    let mut out = String::new();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_ascii_digit() {
            out.push(letter);
            continue;
        }
        out.push('0');
        while letters.next_if(|next| next.is_ascii_digit() || *next == '.').is_some() {}
    }
    out
}

#[test]
fn promises_are_kept_line_by_line() {
    let printed = "host  rail\nhost0 r0 up\nhost0 r1 down\nend";
    assert!(is_kept("host0   r0 up\nhost0 r1 ...", printed, false));
    assert!(is_kept("host rail\n...\nend", printed, false));
    assert!(!is_kept("host rail\nend", printed, false), "lines between them");
    assert!(!is_kept("host0 r0", printed, false), "the rest of the line");
    assert!(!is_kept("end\n...\nhost rail", printed, false), "in another order");
    assert!(contains("nmad: no strategy 'x' (known: fifo)", "no strategy ... (known: ...)"));
    assert!(!contains("nmad: no strategy", "strategy no"));
    assert!(is_kept("took 3.5 us of 12", "took 10 us of 7.25", true));
    assert!(!is_kept("took 3.5 us", "took 3.6 us", false));
}
