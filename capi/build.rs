//! Gives the library the name under which programs load it. It changes with the versions that are not
//! compatible: with the major one, and while that is zero with the minor one too (see `nmad_version`).

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let number = |name: &str| var(name).expect("cargo sets it");
    let (major, minor) = (number("CARGO_PKG_VERSION_MAJOR"), number("CARGO_PKG_VERSION_MINOR"));
    let abi = if major == "0" { format!("0.{minor}") } else { major };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnmad.so.{abi}");
}
