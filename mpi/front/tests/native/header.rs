//! `mpi.h`, for each binary interface: clean C99 and C++, with the types and numbers that binaries rely on.

use crate::library::{ABIS, compile, folder};
use nmad_mpi_table::Abi;

/// Facts of each binary interface that programs were compiled with.
fn facts(abi: Abi) -> &'static str {
    match abi {
        Abi::Standard => {
            "sizeof(MPI_Status) == 32, offsetof(MPI_Status, MPI_ERROR) == 8,
             sizeof(MPI_Comm) == sizeof(void *),
             MPI_ANY_SOURCE == -1, MPI_PROC_NULL == -3, MPI_THREAD_MULTIPLE == 4096,
             MPI_ERR_LASTCODE == 16383,
             (intptr_t)MPI_COMM_WORLD == 0x101, (intptr_t)MPI_INT == 0x209, (intptr_t)MPI_SUM == 0x21,
             (intptr_t)MPI_ERRORS_RETURN == 0x143, (intptr_t)MPI_REQUEST_NULL == 0x180,
             (intptr_t)MPI_IN_PLACE == 1, MPI_STATUS_IGNORE == NULL, MPI_ABI_VERSION == 1"
        }
        Abi::Mpich => {
            "sizeof(MPI_Status) == 20, offsetof(MPI_Status, MPI_SOURCE) == 8, sizeof(MPI_Comm) == sizeof(int),
             MPI_ANY_SOURCE == -2, MPI_PROC_NULL == -1, MPI_THREAD_MULTIPLE == 3, MPI_ERR_TRUNCATE == 14,
             MPI_COMM_WORLD == 0x44000000, MPI_INT == 0x4c000405, MPI_SUM == 0x58000003,
             MPI_ERRORS_RETURN == 0x54000001, MPI_REQUEST_NULL == 0x2c000000,
             (intptr_t)MPI_IN_PLACE == -1, (intptr_t)MPI_STATUS_IGNORE == 1, MPI_TAG_UB == 0x64400001,
             MPI_LB == 0x4c000010, MPI_UB == 0x4c000011, MPI_COMBINER_STRUCT_INTEGER == 11,
             MPI_T_SCOPE_INVALID == 0, sizeof(MPI_F08_status) == 20"
        }
    }
}

#[test]
fn headers_are_clean_and_say_what_binaries_rely_on() {
    for abi in ABIS {
        let lines: String = facts(abi).split(",\n").flat_map(split).map(check).collect();
        let text = format!(
            "#include <mpi.h>\n#include <stddef.h>\n#include <stdio.h>\n\
             int main(void) {{ int wrong = 0;\n{lines}return wrong; }}\n"
        );
        for (standard, end) in [("c99", "c"), ("c++11", "cc")] {
            let file = folder().join(format!("facts-{abi:?}.{end}"));
            std::fs::write(&file, &text).unwrap();
            crate::library::output(&mut std::process::Command::new(compile(standard, abi, &file)));
        }
    }
}

/// Facts of one line; commas in parentheses part nothing.
fn split(line: &str) -> Vec<String> {
    let (mut facts, mut depth) = (vec![String::new()], 0);
    for letter in line.chars() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        match letter {
            ',' if depth == 0 => facts.push(String::new()),
            letter => facts.last_mut().expect("there is one").push(letter),
        }
    }
    facts
}

fn check(fact: String) -> String {
    format!("if (!({fact})) {{ wrong++; puts(\"not so: {}\"); }}\n", fact.trim())
}
