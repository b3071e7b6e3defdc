//! Error classes and codes as numbers of the interface.

use crate::Abi;
use nmad_mpi::api::Code;
use nmad_mpi::error::Class;

/// Numbers below it are classes, and a code of the standard's is `class + CLASSES * detail`.
const CLASSES: i32 = 128;

/// What a number is that is no class and no code.
pub(crate) const NO_CLASS: Class = Class(-1);

/// The number of a code.
pub(crate) fn code_out<A: Abi>(code: Code) -> i32 {
    match A::class_out(code.class) {
        Some(class) => class + CLASSES * i32::from(code.detail),
        None => class_out::<A>(code.class),
    }
}

/// The code of a number.
pub(crate) fn code_in<A: Abi>(number: i32) -> Code {
    let plain = |class| Code { class, detail: 0 };
    if number < 0 || number > A::LAST_CODE {
        return plain(class_in::<A>(number));
    }
    if let Some(class) = A::class_in(number) {
        return plain(Class(class));
    }
    match A::class_in(number % CLASSES) {
        Some(class) => Code { class: Class(class), detail: u8::try_from(number / CLASSES).unwrap_or(0) },
        None => plain(NO_CLASS),
    }
}

/// The number of a class, or of a code that the program has added.
pub(crate) fn class_out<A: Abi>(class: Class) -> i32 {
    match A::class_out(class) {
        Some(number) => number,
        None => class.0.wrapping_sub(Class::LAST.0).wrapping_add(A::LAST_CODE),
    }
}

/// The class or added code of a number; [`NO_CLASS`] if it is neither.
pub(crate) fn class_in<A: Abi>(number: i32) -> Class {
    match A::class_in(number) {
        Some(class) => Class(class),
        None if number > A::LAST_CODE => Class(number - A::LAST_CODE + Class::LAST.0),
        None => NO_CLASS,
    }
}
