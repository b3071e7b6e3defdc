//! The pictures are well-formed and contain the given texts.
use super::*;

fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    let nodes = document.descendants().filter(|node| node.has_tag_name("text"));
    nodes.filter_map(|node| node.text()).map(|text| text.trim().to_owned()).collect()
}

fn count(svg: &str, tag: &str) -> usize {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    document.descendants().filter(|node| node.has_tag_name(tag)).count()
}

fn series(label: &str, points: &[(u64, f64)]) -> Series {
    let points = points.iter().map(|point| (*point).into()).collect();
    Series { label: label.into(), role: Role::Plain, points }
}

fn span(start_us: f64, end_us: f64, label: &str) -> Span {
    Span { start_us, end_us, len: Some(1 << 20), label: label.into() }
}

fn group(spans: Vec<Span>) -> LaneGroup {
    LaneGroup { label: "ratio_split".into(), rails: vec![RailLane { label: "tcp/r0".into(), spans }] }
}

#[test]
fn curves_carry_their_labels_and_axes() {
    let svg = bandwidth_svg("two rails", &[series("a < b & \"c\"", &[(65536, 4500.0), (1 << 20, 11500.0)])]);
    let texts = texts(&svg.expect("drawn"));
    for wanted in ["two rails", "a < b & \"c\"", "64 KiB", "1 MiB", "MB/s", "12000"] {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
    }
}

#[test]
fn latency_is_labelled_by_decades() {
    let svg = latency_svg("t", &[series("tcp", &[(8, 3.4), (1 << 20, 100.0)])]).expect("drawn");
    let texts = texts(&svg);
    for wanted in ["us", "1", "10", "100", "8 B"] {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
    }
}

#[test]
fn nothing_to_draw_is_said() {
    let hollow =
        [series("hollow", &[]), series("bad", &[(0, 1.0), (8, f64::NAN), (9, f64::INFINITY), (10, -1.0)])];
    let bad = group(vec![span(2.0, 1.0, "m"), span(f64::NAN, 1.0, "m"), span(0.0, f64::INFINITY, "m")]);
    let pictures = [
        bandwidth_svg("", &[]),
        latency_svg("", &[]),
        bandwidth_svg("", &hollow),
        latency_svg("", &hollow),
        timeline_svg("", &[]),
        timeline_svg("", &[bad]),
    ];
    for svg in pictures {
        assert!(texts(&svg.expect("drawn")).contains(&"no data".to_owned()));
    }
}

#[test]
fn a_single_point_is_a_mark_without_a_line() {
    let empty = bandwidth_svg("", &[series("one", &[])]).expect("drawn");
    let svg = bandwidth_svg("", &[series("one", &[(4096, 10.0)])]).expect("drawn");
    // Circles: the mark of the point and that of the label.
    assert_eq!((count(&empty, "circle"), count(&svg, "circle")), (1, 2));
    assert!(!texts(&svg).contains(&"no data".to_owned()));
}

#[test]
fn spans_say_what_fits() {
    let svg = timeline_svg("figure", &[group(vec![span(0.0, 95.0, "m1"), span(95.0, 100.0, "m2")])])
        .expect("drawn");
    let texts = texts(&svg);
    for wanted in ["figure", "ratio_split", "tcp/r0", "m1  1 MiB", "1 MiB", "100 us", "m1", "m2"] {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
    }
    assert!(!texts.iter().any(|text| text == "m2  1 MiB"), "the short span has no room for all of it");
}

#[test]
fn very_long_labels_and_many_series_still_draw() {
    let many: Vec<Series> =
        (0..40).map(|i| series(&"x".repeat(i * 20), &[(1 << i, 1e12), (1, 1e-12)])).collect();
    bandwidth_svg("many", &many).expect("drawn");
    latency_svg("many", &many).expect("drawn");
}

#[test]
fn a_mark_stands_at_its_size() {
    let curve = series("copy", &[(1024, 1.0), (1 << 20, 100.0)]);
    let marks = [32 << 10, 0].map(|len| Mark { len, label: format!("from {len}") });
    let svg = latency_svg_with("methods", std::slice::from_ref(&curve), &marks).expect("drawn");
    let without = latency_svg("methods", &[curve]).expect("drawn");
    assert!(texts(&svg).contains(&"from 32768".to_owned()) && !texts(&svg).contains(&"from 0".to_owned()));
    assert!(count(&svg, "polyline") > count(&without, "polyline"), "a dashed line is added");
}

/// The colours of the strokes of all lines, each once.
fn strokes(svg: &str) -> std::collections::BTreeSet<String> {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    let lines = document.descendants().filter(|node| node.has_tag_name("polyline"));
    lines.filter_map(|node| node.attribute("stroke")).map(str::to_owned).collect()
}

#[test]
fn no_two_curves_of_a_picture_share_a_colour() {
    let curve = |i: u64| series(&format!("s{i}"), &[(1024, 1.0 + i as f64), (1 << 20, 2.0 + i as f64)]);
    let mut many: Vec<Series> = (0..20).map(curve).collect();
    let without = strokes(&bandwidth_svg("", &[]).expect("drawn"));
    many[0].role = Role::Baseline;
    many[7].role = Role::Main;
    let with = strokes(&bandwidth_svg("", &many).expect("drawn"));
    assert_eq!(with.difference(&without).count(), 20);
}

#[test]
fn the_baseline_is_dashed_and_the_main_curve_is_bold() {
    let with = |role: Role| {
        let one = Series { role, ..series("one", &[(1024, 1.0), (1 << 20, 2.0)]) };
        bandwidth_svg("", &[one]).expect("drawn")
    };
    let (plain, baseline, main) = (with(Role::Plain), with(Role::Baseline), with(Role::Main));
    assert!(count(&baseline, "polyline") > count(&plain, "polyline") + 10);
    assert!(!plain.contains("stroke-width=\"4\"") && main.contains("stroke-width=\"4\""));
    assert_eq!(main.matches("bold").count(), plain.matches("bold").count() + 1, "its label is bold, too");
}

#[test]
fn quartiles_are_a_band() {
    let point = |len, value, quartiles| Point { len, value, quartiles };
    let with = |points: Vec<Point>| {
        let one = Series { label: "one".into(), role: Role::Plain, points };
        bandwidth_svg("", &[one]).expect("drawn")
    };
    let banded = [point(1024, 5.0, Some((4.0, 6.0))), point(4096, 9.0, Some((8.0, 9.5)))];
    let alone = [banded[0], point(4096, 9.0, None)];
    assert_eq!(count(&with(banded.to_vec()), "polygon"), count(&with(alone.to_vec()), "polygon") + 1);
    let bad = [point(1024, 5.0, Some((f64::NAN, 6.0))), point(4096, 9.0, Some((1.0, f64::INFINITY)))];
    assert_eq!(count(&with(bad.to_vec()), "polygon"), count(&with(alone.to_vec()), "polygon"));
    let names = |points: Vec<Point>| texts(&with(points)).iter().any(|text| text.starts_with("bands: "));
    assert!(names(banded.to_vec()) && !names(alone.to_vec()), "what a band is stands below the curves");
}

#[test]
fn lines_to_labels_do_not_look_like_curves() {
    let svg = bandwidth_svg("", &[series("one", &[(1024, 1.0), (4096, 2.0)])]).expect("drawn");
    let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
    let lines = document.descendants().filter(|node| node.has_tag_name("polyline"));
    let colours: Vec<&str> = lines.filter_map(|node| node.attribute("stroke")).collect();
    let curve = colours.iter().find(|colour| colours.iter().filter(|other| other == colour).count() == 1);
    assert!(curve.is_some(), "one line alone has the colour of the curve: {colours:?}");
}

#[test]
fn spans_without_a_length_say_their_label_alone() {
    let calculation = Span { len: None, ..span(0.0, 100.0, "calculation") };
    let texts = texts(&timeline_svg("", &[group(vec![calculation])]).expect("drawn"));
    assert!(texts.iter().any(|text| text == "calculation"), "{texts:?}");
    assert!(!texts.iter().any(|text| text.ends_with(" B")), "{texts:?}");
}

#[test]
fn dots_name_cases_and_libraries() {
    let dot = |label: &str, us: &[f64]| Dot {
        label: label.into(),
        is_main: label == "ours",
        summary: crate::stats::Summary::of(us).expect("samples"),
    };
    let groups =
        [DotGroup { label: "8 B".into(), dots: vec![dot("ours", &[0.3, 0.4]), dot("theirs", &[5.0])] }];
    let svg = dots_svg("small messages", &groups).expect("drawn");
    let texts = texts(&svg);
    for wanted in ["small messages", "8 B", "ours", "theirs", "0.350 us", "5.00 us", "10 us"] {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
    }
    assert_eq!(count(&svg, "circle"), 2);
    assert!(self::texts(&dots_svg("", &[]).expect("drawn")).contains(&"no data".to_owned()));
}

#[test]
fn distributions_name_their_cases_and_bounds() {
    let case = |label: &str, times: &[f64]| Distribution { label: label.into(), times_ms: times.to_vec() };
    let cases = [case("8 B", &[0.0, 12.0, f64::NAN, 48.0]), case("4 MiB", &[130.0])];
    let svg = distribution_svg("stalls", &cases, &[50.0]).expect("drawn");
    let texts = texts(&svg);
    for wanted in ["stalls", "8 B", "4 MiB", "50 ms", "100 ms", "100 %"] {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
    }
    assert!(
        super::tests::texts(&distribution_svg("", &[], &[]).expect("drawn")).contains(&"no data".to_owned())
    );
}
