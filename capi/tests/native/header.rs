//! Header and library agree: in names, in types of arguments, in the layout of structures, in both languages.

use crate::library::{compile, folder, has, output, source};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

/// Types of the arguments, and what is returned.
type Signature = (Vec<String>, String);

/// The functions that the header declares, as it writes their types.
fn declared() -> BTreeMap<String, Signature> {
    let text = std::fs::read_to_string(source("include/nmad.h")).expect("the header");
    let declarations = text.split("\nNMAD_API ").skip(1).map(|rest| rest.split(';').next().expect("its end"));
    declarations.map(declaration).collect()
}

fn declaration(text: &str) -> (String, Signature) {
    let (head, arguments) = text.trim_end_matches(')').split_once('(').expect("arguments");
    let at = head.find("nmad_").expect("a name");
    let arguments = arguments.split(',').map(|argument| {
        let argument = argument.split_whitespace().collect::<Vec<_>>().join(" ");
        // The text behind the last space or star is the name.
        let end = argument.rfind([' ', '*']).map_or(argument.len(), |at| at + 1);
        argument[..end].trim().to_string()
    });
    let arguments = arguments.filter(|argument| !argument.is_empty() && argument != "void").collect();
    (head[at..].to_string(), (arguments, head[..at].trim().to_string()))
}

/// The functions that the source exports, their types said in C.
fn exported() -> BTreeMap<String, Signature> {
    let text = std::fs::read_to_string(source("src/exports.rs")).expect("the source");
    let functions = text.split("extern \"C\" fn ").skip(1);
    functions
        .map(|rest| {
            let (head, _) = rest.split_once(" {").expect("a body");
            let (name, rest) = head.split_once('(').expect("arguments");
            let (arguments, answer) = rest.split_once(')').expect("an answer");
            let arguments = arguments.split(',').filter_map(|argument| argument.trim().split_once(": "));
            let arguments = arguments.map(|(name, kind)| in_c(name, kind)).collect();
            (name.to_string(), (arguments, in_c("", answer.trim().trim_start_matches("-> "))))
        })
        .collect()
}

/// A type of the source in the words of the header; three kinds of names are 64-bit numbers.
fn in_c(name: &str, kind: &str) -> String {
    let plain = |kind: &str| match (name.trim_end_matches('s'), kind) {
        ("request" | "packing" | "unpacking", "u64") => format!("nmad_{}_t", name.trim_end_matches('s')),
        _ => match kind {
            "c_int" => "int".into(),
            "u32" => "uint32_t".into(),
            "u64" => "uint64_t".into(),
            "usize" => "size_t".into(),
            "CMessage" => "nmad_message_t".into(),
            "CHints" => "nmad_hints_t".into(),
            "CRailInfo" => "nmad_rail_info_t".into(),
            "Setting" => "nmad_option_t".into(),
            "RawStrategy" => "nmad_strategy_t".into(),
            "IoVec" => "struct iovec".into(),
            "SessionPointer" => "nmad_session_t *".into(),
            other => panic!("{name}: {other} has no name in C"),
        },
    };
    let inner = |kind: &str| plain(kind.split(['<', '>']).nth(1).expect("a type"));
    match kind {
        "Text" | "*const c_char" => "const char *".into(),
        "Memory<Data>" => "const void *".into(),
        "Memory<Buffer>" => "void *".into(),
        _ if kind.starts_with("In<") => format!("const {} *", inner(kind)),
        _ if kind.starts_with("Out<SessionPointer") => "nmad_session_t **".into(),
        _ if kind.starts_with("Out<") || kind.starts_with("InOut<") => format!("{} *", inner(kind)),
        _ => plain(kind),
    }
}

#[test]
fn header_and_library_agree_in_names() {
    let library = folder().join("libnmad.so");
    let symbols = output(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let symbols: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let mut declared: Vec<String> = declared().into_keys().collect();
    declared.sort_unstable();
    assert_eq!(symbols, declared);
    assert!(declared.len() >= 40, "{declared:?}");
}

#[test]
fn header_and_source_agree_in_types() {
    let (declared, exported) = (declared(), exported());
    for (name, signature) in &declared {
        assert_eq!(Some(signature), exported.get(name), "{name}");
    }
    assert_eq!(declared.len(), exported.len());
}

/// A program that takes the address of every function with the type that the header gives it, and prints the
/// layout of the structures.
fn program() -> String {
    let mut text =
        "#include <nmad.h>\n#include <stdio.h>\nint main(void) {\n    int count = 0;\n".to_string();
    for (name, (arguments, answer)) in declared() {
        let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
        let _ =
            writeln!(text, "    {{ {answer} (*function)({arguments}) = {name}; count += function != 0; }}");
    }
    let structures = [
        ("nmad_hints_t", &["flags", "priority", "rail", "strategy"][..]),
        ("nmad_message_t", &["rank", "context", "tag", "len", "received"]),
        ("nmad_option_t", &["key", "value"]),
        ("nmad_waiting_t", &["tag", "len", "size", "context", "seq", "priority", "flags"]),
        ("nmad_way_t", &["rail", "wire", "idle_in_ns", "bandwidth", "latency_ns", "flags", "forecast"]),
        ("nmad_turn_t", &["rank", "priority", "backlog", "granted"]),
        ("nmad_strategy_t", &["size", "name", "state", "fill", "split", "carried", "choose", "relearnt"]),
        ("nmad_forecast_t", &["ns", "of"]),
        ("nmad_plugin_t", &["abi", "count", "version", "strategies"]),
        ("nmad_rail_info_t", &["name", "address", "bandwidth", "chunk_bytes", "replayed"]),
    ];
    for (structure, fields) in structures {
        let _ = writeln!(text, "    printf(\"{structure} %zu\", sizeof({structure}));");
        for field in fields {
            let _ = writeln!(text, "    printf(\" {field} %zu\", offsetof({structure}, {field}));");
        }
        text.push_str("    printf(\"\\n\");\n");
    }
    text + "    printf(\"functions %d\\n\", count);\n    return 0;\n}\n"
}

#[test]
fn every_function_links_with_its_type_in_both_languages() {
    // As `src/` and `plugin/` declare them; a field that is added there or here must be added to both.
    let expected = "\
nmad_hints_t 16 flags 0 priority 4 rail 8 strategy 12
nmad_message_t 32 rank 0 context 4 tag 8 len 16 received 24
nmad_option_t 16 key 0 value 8
nmad_waiting_t 40 tag 0 len 8 size 16 context 24 seq 28 priority 32 flags 36
nmad_way_t 48 rail 0 wire 4 idle_in_ns 8 bandwidth 16 latency_ns 24 flags 32 forecast 40
nmad_turn_t 24 rank 0 priority 4 backlog 8 granted 16
nmad_strategy_t 64 size 0 name 8 state 16 fill 24 split 32 carried 40 choose 48 relearnt 56
nmad_forecast_t 16 ns 0 of 8
nmad_plugin_t 24 abi 0 count 4 version 8 strategies 16
nmad_rail_info_t 352 name 0 address 64 bandwidth 256 chunk_bytes 312 replayed 344
";
    let expected = format!("{expected}functions {}\n", declared().len());
    for (standard, suffix) in [("c99", "c"), ("c17", "c"), ("c++11", "cc"), ("c++20", "cc")] {
        if standard.starts_with("c++") && !has("c++") {
            eprintln!("skipped: {standard}: there is no c++ here");
            continue;
        }
        let file = folder().join(format!("all.{suffix}"));
        std::fs::write(&file, program()).expect("it can be written");
        assert_eq!(output(&mut Command::new(compile(standard, &file))), expected, "{standard}");
    }
}
