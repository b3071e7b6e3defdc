//! `libmpifort_abi.so.1`: MPI for Fortran programs, on a library of C with the binary interface of MPI 5.
//! Handles, which are pointers in C, are the integers that `MPI_Comm_toint` and its like give.

#[path = "../../src/binding/mod.rs"]
mod binding;

/// What differs between the interfaces.
#[allow(non_upper_case_globals)]
mod abi {
    use super::binding::c;
    use std::ffi::c_void;

    include!(concat!(env!("OUT_DIR"), "/lengths.rs"));

    pub(crate) type Handle = *mut c_void;
    pub(crate) type File = *mut c_void;

    pub(crate) const IN_PLACE: usize = 1;
    pub(crate) const AUTOMATIC: usize = 2;
    pub(crate) const STATUS_IGNORE: usize = 0;

    /// Integers of a status.
    pub(crate) const STATUS: usize = 8;

    /// MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
    #[unsafe(no_mangle)]
    pub(crate) static mut madmpi1_: [i32; 2 + STATUS] = [0; 2 + STATUS];
    /// MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
    #[unsafe(no_mangle)]
    pub(crate) static mut madmpi2_: [i32; STATUS + 1] = [0; STATUS + 1];
    /// MPI_ARGVS_NULL, MPI_ARGV_NULL
    #[unsafe(no_mangle)]
    pub(crate) static mut madmpic_: [u8; 2] = [0; 2];
    /// MPI_UNWEIGHTED
    #[unsafe(no_mangle)]
    pub(crate) static mut madmpi5_: i32 = 0;
    /// MPI_WEIGHTS_EMPTY
    #[unsafe(no_mangle)]
    pub(crate) static mut madmpi9_: i32 = 0;
    pub(crate) use {
        madmpi1_ as places, madmpi2_ as lists, madmpi5_ as unweighted, madmpi9_ as weights_empty,
        madmpic_ as texts,
    };

    pub(crate) fn dup_fn() -> *const c_void {
        std::ptr::without_provenance(1)
    }

    pub(crate) fn unweighted_in_c() -> *mut i32 {
        std::ptr::without_provenance_mut(10)
    }

    pub(crate) fn weights_empty_in_c() -> *mut i32 {
        std::ptr::without_provenance_mut(11)
    }

    pub(crate) fn keyval_in(keyval: i32) -> i32 {
        keyval
    }

    /// MPI_WIN_BASE, MPI_WIN_SIZE
    pub(crate) const WIN: [i32; 2] = [601, 603];

    /// Whether the attribute is one that MPI has.
    pub(crate) fn is_predefined(keyval: i32) -> bool {
        (500..700).contains(&keyval)
    }

    pub(crate) fn no_handle() -> Handle {
        std::ptr::null_mut()
    }

    pub(crate) fn no_file() -> File {
        std::ptr::null_mut()
    }

    /// Handles below it are the standard's own, which are numbers in C too.
    const PREDEFINED: usize = 0x1000;

    macro_rules! handles {
        ($($name_in:ident $from:ident $name_out:ident $to:ident;)*) => {$(
            pub(crate) unsafe fn $name_in(number: i32) -> Handle {
                match number as u32 as usize {
                    number if number < PREDEFINED => std::ptr::without_provenance_mut(number),
                    // SAFETY: the library takes any number.
                    _ => unsafe { c::$from(number) },
                }
            }

            pub(crate) unsafe fn $name_out(handle: Handle) -> i32 {
                match handle.addr() {
                    number if number < PREDEFINED => number as i32,
                    // SAFETY: the handle comes from the library.
                    _ => unsafe { c::$to(handle) },
                }
            }
        )*};
    }

    handles! {
        comm_in PMPI_Comm_fromint comm_out PMPI_Comm_toint;
        group_in PMPI_Group_fromint group_out PMPI_Group_toint;
        type_in PMPI_Type_fromint type_out PMPI_Type_toint;
        op_in PMPI_Op_fromint op_out PMPI_Op_toint;
        request_in PMPI_Request_fromint request_out PMPI_Request_toint;
        info_in PMPI_Info_fromint info_out PMPI_Info_toint;
        errhandler_in PMPI_Errhandler_fromint errhandler_out PMPI_Errhandler_toint;
        message_in PMPI_Message_fromint message_out PMPI_Message_toint;
        win_in PMPI_Win_fromint win_out PMPI_Win_toint;
        file_in PMPI_File_fromint file_out PMPI_File_toint;
        session_in PMPI_Session_fromint session_out PMPI_Session_toint;
    }

    /// A list of handles; the library copies what it keeps.
    pub(crate) unsafe fn list(from: *const i32, len: usize, take: unsafe fn(i32) -> Handle) -> Vec<Handle> {
        // SAFETY: the program passes a list of this length.
        (0..len).map(|index| unsafe { take(from.add(index).read()) }).collect()
    }

    /// Writes a list back.
    pub(crate) unsafe fn give_list(to: *mut i32, from: &[Handle], give: unsafe fn(Handle) -> i32) {
        for (index, &handle) in from.iter().enumerate() {
            // SAFETY: the program passes a list of this length.
            unsafe { to.add(index).write(give(handle)) }
        }
    }

    /// Writes those of a list that the library has written.
    pub(crate) unsafe fn give_made(to: *mut i32, from: &[Handle], give: unsafe fn(Handle) -> i32) {
        for (index, &handle) in from.iter().enumerate().filter(|(_, handle)| !handle.is_null()) {
            // SAFETY: the program passes a list of this length.
            unsafe { to.add(index).write(give(handle)) }
        }
    }
}
