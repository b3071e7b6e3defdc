//! Handles to numbers and back.

use crate::Abi;

pub(crate) fn file_toint<A: Abi>(file: A::File) -> i32 {
    A::to_int(A::file_in(file))
}

pub(crate) fn file_fromint<A: Abi>(number: i32) -> A::File {
    A::file_out(A::from_int(number))
}

macro_rules! conversions {
    ($($to:ident, $from:ident;)*) => {$(
        pub(crate) fn $to<A: Abi>(handle: A::Handle) -> i32 {
            A::to_int(handle)
        }

        pub(crate) fn $from<A: Abi>(number: i32) -> A::Handle {
            A::from_int(number)
        }
    )*};
}

conversions! {
    comm_toint, comm_fromint;
    errhandler_toint, errhandler_fromint;
    group_toint, group_fromint;
    info_toint, info_fromint;
    message_toint, message_fromint;
    op_toint, op_fromint;
    request_toint, request_fromint;
    session_toint, session_fromint;
    type_toint, type_fromint;
    win_toint, win_fromint;
}
