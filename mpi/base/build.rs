//! Compiles `c/wide.c`: the arithmetic of numbers that Rust has no type for.

fn main() {
    println!("cargo::rerun-if-changed=c/wide.c");
    // Without contraction and fast modes: results are those that a program in C gets.
    cc::Build::new().file("c/wide.c").opt_level(2).flag("-ffp-contract=off").compile("nmad_mpi_wide");
}
