//! Each rule on a small made-up tree: it finds what it should, and only that.
use std::fs;

use super::*;

const PACKAGE: &str = "[package]\nname = \"p\"\n";
const FACE: &str = "//! A layer.\n";

/// The findings in a workspace of these files, as `path:line rule`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    findings(files).iter().map(|f| format!("{}:{} {}", f.path, f.line, f.rule)).collect()
}

fn findings(files: &[(&str, &str)]) -> Vec<Finding> {
    let root = tempfile::tempdir().expect("a folder for a made-up tree");
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("within the root")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    check(root.path()).expect("readable")
}

/// As [`found`], in a package whose library is `text` after its introduction.
fn found_in_lib(text: &str) -> Vec<String> {
    found(&[("Cargo.toml", PACKAGE), ("src/lib.rs", &format!("{FACE}{text}"))])
}

#[test]
fn a_tidy_tree_has_no_findings() {
    assert_eq!(found_in_lib("pub fn f() {}\n"), Vec::<String>::new());
}

#[test]
fn long_lines() {
    let line = |columns: usize| format!("// {}\n", "\u{e4}".repeat(columns - 3));
    assert_eq!(found_in_lib(&line(110)), Vec::<String>::new());
    assert_eq!(found_in_lib(&line(111)), ["src/lib.rs:2 line-length"]);
}

#[test]
fn long_files() {
    assert_eq!(found_in_lib(&"\n".repeat(499)), Vec::<String>::new());
    assert_eq!(found_in_lib(&"\n".repeat(500)), ["src/lib.rs:0 file-length"]);
}

#[test]
fn long_functions_also_in_macros() {
    let function = |lines: usize| format!("fn f() {{{}}}\n", "\n".repeat(lines - 1));
    assert_eq!(found_in_lib(&function(70)), Vec::<String>::new());
    assert_eq!(found_in_lib(&function(71)), ["src/lib.rs:2 function-length"]);
    assert_eq!(found_in_lib(&format!("m! {{ {} }}", function(71))), ["src/lib.rs:2 function-length"]);
    assert_eq!(
        found_in_lib(&format!("trait T {{ fn g(); }}\nmod x {{{}}}", "\n".repeat(80))),
        Vec::<String>::new()
    );
}

#[test]
fn broken_source() {
    assert_eq!(found_in_lib("fn f( {}\n"), ["src/lib.rs:0 syntax"]);
}

#[test]
fn leftover_markers() {
    let note = concat!("TO", "DO");
    assert_eq!(found_in_lib(&format!("// {note}: later\n")), ["src/lib.rs:2 marker"]);
    assert_eq!(found_in_lib(&format!("// {note}S\n")), Vec::<String>::new());
    assert_eq!(found_in_lib("fn f() {\n    todo!()\n}\n"), ["src/lib.rs:3 marker"]);
    assert_eq!(found_in_lib("fn f() { let todo = \"dbg!\"; }\n"), Vec::<String>::new());
}

#[test]
fn files_nobody_uses() {
    let lib = "//! A.\nmod a;\nmod b;\n#[path = \"odd/name.rs\"]\npub(crate) mod c;\nmod d { mod e; }\n";
    let mut files = vec![
        ("Cargo.toml", "[package]\nname = \"p\"\n[[bin]]\nname = \"x\"\npath = \"tool.rs\"\n"),
        ("src/lib.rs", lib),
        ("src/a.rs", "mod inner;\ninclude!(\"table.rs\");\n"),
        ("src/a/inner.rs", ""),
        ("src/table.rs", ""),
        ("src/b/mod.rs", "//! B.\nmod inner;\n"),
        ("src/b/inner.rs", ""),
        ("src/odd/name.rs", ""),
        ("src/d/e.rs", ""),
        ("src/bin/one.rs", "fn main() {}"),
        ("tests/all/main.rs", "mod help;"),
        ("tests/all/help.rs", ""),
        ("tool.rs", "fn main() {}"),
    ];
    assert_eq!(found(&files), Vec::<String>::new());
    files.extend([("src/inner.rs", ""), ("tests/all/lost.rs", ""), ("src/a/table.rs", "")]);
    assert_eq!(
        found(&files),
        ["src/a/table.rs:0 unused", "src/inner.rs:0 unused", "tests/all/lost.rs:0 unused"]
    );
}

#[test]
fn edges_inside_the_engine() {
    let engine = |path: &str, text: &str| {
        let head = [("engine/Cargo.toml", PACKAGE), ("engine/src/engine.rs", "use crate::transfer::T;")];
        let lib = "//! E.\n#![no_std]\nmod engine;\nmod clock;\n#[path = \"made/up.rs\"]\nmod m;\n";
        let mut files = head.to_vec();
        files.extend([("engine/src/lib.rs", lib), ("engine/src/clock.rs", "")]);
        files.push((path, text));
        let all = found(&files);
        all.into_iter().filter(|finding| !finding.ends_with("unused")).collect::<Vec<_>>()
    };
    let collect = "engine/src/collect/window.rs";
    assert_eq!(
        engine(collect, "use crate::{clock::Instant, collect::X};\nuse super::y;"),
        Vec::<String>::new()
    );
    let refused = ["engine/src/collect/window.rs:1 edge"];
    assert_eq!(engine(collect, "use crate::schedule::RailView;"), refused);
    assert_eq!(engine(collect, "fn f(x: super::super::transfer::T) {}"), refused);
    assert_eq!(engine(collect, "use crate::{clock, transfer::T};"), refused);
    assert_eq!(engine("engine/src/schedule/a.rs", "use crate::{collect::W, profile};"), Vec::<String>::new());
    let refused = ["engine/src/schedule/a.rs:1 edge"];
    assert_eq!(engine("engine/src/schedule/a.rs", "use crate::transfer::driver::Driver;"), refused);
    assert_eq!(engine("engine/src/clock.rs", "use crate::engine::E;"), ["engine/src/clock.rs:1 edge"]);
}

#[test]
fn core_crates_without_no_std() {
    let wire = |text: &str| found(&[("wire/Cargo.toml", PACKAGE), ("wire/src/lib.rs", text)]);
    assert_eq!(wire("//! W.\n#![no_std]\n"), Vec::<String>::new());
    assert_eq!(wire("//! W.\n#![cfg_attr(not(test), no_std)]\n"), Vec::<String>::new());
    assert_eq!(wire("//! W, no_std.\n"), ["wire/src/lib.rs:1 no-std"]);
}

#[test]
fn unsafe_code_out_of_its_place() {
    let with = |list: &str, text: &str| {
        let lib = format!("{FACE}{text}");
        found(&[("Cargo.toml", PACKAGE), ("src/lib.rs", &lib), ("tools/tidy/unsafe.txt", list)])
    };
    let block = "fn f() { unsafe { g() } }\n";
    assert_eq!(with("", block), ["src/lib.rs:2 unsafe"]);
    assert_eq!(with("src/lib.rs # why\n", block), Vec::<String>::new());
    assert_eq!(with("", "// unsafe\nconst S: &str = \"unsafe\";\n"), Vec::<String>::new());
    assert_eq!(with("# why\nsrc/lib.rs\n", ""), ["tools/tidy/unsafe.txt:2 unsafe"]);
}

#[test]
fn layers_without_an_introduction() {
    let lib = "use std::fmt;\n//! Too late.\nmod a;\n";
    let found =
        found(&[("Cargo.toml", PACKAGE), ("src/lib.rs", lib), ("src/a/mod.rs", ""), ("src/main.rs", "")]);
    assert_eq!(found, ["src/a/mod.rs:1 introduction", "src/lib.rs:1 introduction"]);
}

#[test]
fn links_that_lead_nowhere() {
    let page = "# Here\n[a](../README.md#x) [b](https://x.example/y) [c](#here) [d](sub/)\n\n\
                `[e](code.md)` [f](lost.md)\n";
    let files = [
        ("README.md", "# `x`\n![i](docs/lost.svg)\n"),
        ("docs/page.md", page),
        ("docs/sub/x.md", "[r]\n\n[r]: ../page.md\n"),
    ];
    assert_eq!(found(&files), ["README.md:2 link", "docs/page.md:4 link"]);
}

#[test]
fn links_to_headings_that_are_not_there() {
    let page = "# Two words, *a* `b`\n## Again\n## Again\n[a](#two-words-a-b) [b](#again-1) [c](#again-2)\n";
    let ours = "https://github.com/newmadeleine/newmadeleine/blob/main";
    let other =
        format!("[a](page.md#again) <img src=\"lost.svg\"> [b]({ours}/page.md#lost) [c]({ours}/page.md)\n");
    let files = [("page.md", page), ("other.md", &*other)];
    assert_eq!(found(&files), ["other.md:1 link", "other.md:1 link", "page.md:4 link"]);
}

#[test]
fn pages_outside_of_the_book() {
    let summary = "# Summary\n[in](in.md)\n[in](in.md)\n";
    let files = [
        ("docs/SUMMARY.md", summary),
        ("docs/in.md", "[a](../README.md)\n\n[b](out.md)\n"),
        ("docs/out.md", ""),
        ("README.md", ""),
    ];
    assert_eq!(found(&files), ["docs/SUMMARY.md:3 book", "docs/in.md:1 book", "docs/out.md:0 book"]);
}

#[test]
fn packages_that_cannot_be_published() {
    let head = "[package]\nname = \"p\"\nversion = \"1.0.0\"\n";
    let keys = ["description", "license", "repository", "readme", "keywords", "categories"];
    let whole = keys.iter().fold(head.to_owned(), |text, key| format!("{text}{key}.workspace = true\n"));
    let lib = format!(
        "{FACE}const A: &str = include_str!(\"../a.txt\");\nfn f() {{ include_str!(\"../../b.txt\"); }}\n"
    );
    let with = |manifest: &str| found(&[("p/Cargo.toml", manifest), ("p/src/lib.rs", &*lib), ("b.txt", "")]);
    assert_eq!(with(&whole), ["p/src/lib.rs:3 package"]);
    assert_eq!(with(head).len(), 1 + keys.len());
    assert_eq!(with(&format!("{head}publish = false\n")), Vec::<String>::new());
}

#[test]
fn tests_that_cargo_leaves_out() {
    let off =
        format!("{PACKAGE}[lib]\ndoctest = false\n[[bin]]\nname = \"x\"\npath = \"x.rs\"\ntest = false\n");
    let with = |lib: &str, bin: &str| {
        found(&[("Cargo.toml", &*off), ("src/lib.rs", &format!("{FACE}{lib}")), ("x.rs", bin)])
    };
    assert_eq!(with("//! ```text\n//! words\n//! ```\n", "fn main() {}"), Vec::<String>::new());
    assert_eq!(
        with("/// ```no_run\n/// f();\n/// ```\nfn f() {}\n", "fn main() {}"),
        ["src/lib.rs:2 untested"]
    );
    assert_eq!(with("", "fn main() {}\nmod t {\n    #[test]\n    fn t() {}\n}\n"), ["x.rs:3 untested"]);
}

#[test]
fn exceptions_need_a_use_and_a_reason() {
    let long = format!("{FACE}fn f() {{{}}}\n", "\n".repeat(80));
    let with =
        |list: &str| found(&[("Cargo.toml", PACKAGE), ("src/lib.rs", &long), ("tools/tidy/allow.txt", list)]);
    assert_eq!(with("# why\nfunction-length src/lib.rs::f a table\n"), Vec::<String>::new());
    assert_eq!(with("function-length src/lib.rs::f\n"), ["tools/tidy/allow.txt:1 allow"]);
    let both = ["src/lib.rs:2 function-length", "tools/tidy/allow.txt:1 allow"];
    assert_eq!(with("function-length src/lib.rs::g a table\n"), both);
}

#[test]
fn build_output_is_not_read() {
    let files = [("target/x.rs", "todo!()"), ("fuzz/target/y.rs", "todo!()"), (".git/z.rs", "todo!()")];
    assert_eq!(found(&files), Vec::<String>::new());
}

#[test]
fn files_that_import_each_other_in_a_circle() {
    let of = |files: &[(&'static str, &'static str)]| {
        let lib = "//! A.\nmod a;\nmod b;\nmod c;\npub use a::A;\n";
        let mut all = vec![("Cargo.toml", PACKAGE), ("src/lib.rs", lib)];
        all.extend(files);
        found(&all)
    };
    let (a, b, c) = ("src/a.rs", "src/b.rs", "src/c.rs");
    let line = [(a, "pub struct A;"), (b, "use crate::{A, c::C};"), (c, "use super::a::A; pub struct C;")];
    assert_eq!(of(&line), Vec::<String>::new());
    // By way of the name that the crate passes on, and by a path outside of `use`.
    let circle = [(a, "pub struct A; fn f() { crate::b::g() }"), (b, "use crate::A; pub fn g() {}"), (c, "")];
    assert_eq!(of(&circle), ["src/a.rs:0 circle"]);
    let long = [(a, "use crate::b::B; pub struct A;"), (b, "use crate::c::C;"), (c, "use crate::a::A;")];
    assert_eq!(of(&long), ["src/a.rs:0 circle"]);
    let test = [(a, "pub struct A;\n#[cfg(test)]\nuse crate::b::B;"), (b, "use crate::A;"), (c, "")];
    assert_eq!(of(&test), Vec::<String>::new());
    // A module consists of the files in its folder.
    let folder = [
        (a, "pub struct A;"),
        (b, "mod inner;\nuse inner::I;\npub struct B;"),
        ("src/b/inner.rs", "use super::B;\npub struct I;"),
        (c, ""),
    ];
    assert_eq!(of(&folder), Vec::<String>::new());
}

#[test]
fn files_that_documents_mention_and_that_are_not_there() {
    let tree = |text: &str| {
        let lib = ("src/lib.rs", "//! A.\nmod a;\n");
        let files = [("Cargo.toml", PACKAGE), lib, ("src/a.rs", ""), ("docs/x.md", text)];
        let all = found(&files);
        all.into_iter().filter(|finding| finding.ends_with("mention")).collect::<Vec<_>>()
    };
    assert_eq!(
        tree("`a.rs`, `src/`, `src/a.rs`, `nmad/x`, `x.h`, `b::c`\n\n    src/b.rs\n"),
        Vec::<String>::new()
    );
    assert_eq!(tree("\n`b.rs` and `src/b/`"), ["docs/x.md:2 mention", "docs/x.md:2 mention"]);
}
