//! The pictures are well-formed and say what they were told.
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
    Series { label: label.into(), points: points.to_vec() }
}

fn span(start_us: f64, end_us: f64, label: &str) -> Span {
    Span { start_us, end_us, len: 1 << 20, label: label.into() }
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
    // Circles: the mark of the point and that of the legend.
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
    assert_eq!(count(&svg, "polyline"), count(&without, "polyline") + 1);
}
