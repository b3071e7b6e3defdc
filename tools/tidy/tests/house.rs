//! The house itself is tidy.
use std::path::Path;

#[test]
fn the_house_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let findings = nmad_tidy::check(&root).expect("the workspace is readable");
    let list: String = findings.iter().map(|finding| format!("\n{finding}")).collect();
    assert!(findings.is_empty(), "{} untidy:{list}\n", findings.len());
}
