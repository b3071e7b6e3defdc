//! `libmpifort.so.12`: MPI for Fortran programs, on a library of C with the binary interface of MPICH;
//! programs that MPICH compiled run with it. Handles are the same numbers in both languages, but for files.

#[path = "../../src/binding/mod.rs"]
mod binding;

/// What differs between the interfaces.
#[allow(non_upper_case_globals)]
mod abi {
    use std::ffi::c_void;

    include!(concat!(env!("OUT_DIR"), "/lengths.rs"));

    pub(crate) type Handle = i32;
    pub(crate) type File = *mut c_void;

    pub(crate) const IN_PLACE: usize = -1_isize as usize;
    pub(crate) const AUTOMATIC: usize = -2_isize as usize;
    pub(crate) const STATUS_IGNORE: usize = 1;

    /// Integers of a status.
    pub(crate) const STATUS: usize = 5;

    // A program has these common blocks too, and its own are taken for both.
    /// MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
    #[unsafe(no_mangle)]
    pub(crate) static mut mpipriv1_: [i32; 2 + STATUS] = [0; 2 + STATUS];
    /// MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
    #[unsafe(no_mangle)]
    pub(crate) static mut mpipriv2_: [i32; STATUS + 1] = [0; STATUS + 1];
    /// MPI_ARGVS_NULL, MPI_ARGV_NULL
    #[unsafe(no_mangle)]
    pub(crate) static mut mpiprivc_: [u8; 2] = [0; 2];
    /// MPI_UNWEIGHTED
    #[unsafe(no_mangle)]
    pub(crate) static mut mpifcmb5_: i32 = 0;
    /// MPI_WEIGHTS_EMPTY
    #[unsafe(no_mangle)]
    pub(crate) static mut mpifcmb9_: i32 = 0;
    pub(crate) use {
        mpifcmb5_ as unweighted, mpifcmb9_ as weights_empty, mpipriv1_ as places, mpipriv2_ as lists,
        mpiprivc_ as texts,
    };

    unsafe extern "C" {
        static MPI_UNWEIGHTED: *mut i32;
        static MPI_WEIGHTS_EMPTY: *mut i32;
        static mut MPI_F_STATUS_IGNORE: *mut i32;
        static mut MPI_F_STATUSES_IGNORE: *mut i32;
        static mut MPI_F08_STATUS_IGNORE: *mut i32;
        static mut MPI_F08_STATUSES_IGNORE: *mut i32;
        fn MPIR_Dup_fn();
        fn MPI_File_f2c(number: i32) -> File;
        fn MPI_File_c2f(file: File) -> i32;
    }

    /// Tells the library of C what Fortran passes to ignore a status, when both are loaded.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static TELL: extern "C" fn() = {
        extern "C" fn tell() {
            // SAFETY: nobody reads them before the libraries are loaded.
            unsafe {
                let (one, several) = ((&raw mut places).cast::<i32>().add(2), (&raw mut lists).cast());
                (MPI_F_STATUS_IGNORE, MPI_F_STATUSES_IGNORE) = (one, several);
                (MPI_F08_STATUS_IGNORE, MPI_F08_STATUSES_IGNORE) = (one, several);
            }
        }
        tell
    };

    pub(crate) fn dup_fn() -> *const c_void {
        MPIR_Dup_fn as *const c_void
    }

    pub(crate) fn unweighted_in_c() -> *mut i32 {
        // SAFETY: nobody writes it.
        unsafe { MPI_UNWEIGHTED }
    }

    pub(crate) fn weights_empty_in_c() -> *mut i32 {
        // SAFETY: nobody writes it.
        unsafe { MPI_WEIGHTS_EMPTY }
    }

    /// Keys of predefined attributes are odd in C, where they are answered as pointers, and even in Fortran.
    pub(crate) fn keyval_in(keyval: i32) -> i32 {
        if is_predefined(keyval) && keyval & 1 == 0 { keyval - 1 } else { keyval }
    }

    /// MPI_WIN_BASE, MPI_WIN_SIZE
    pub(crate) const WIN: [i32; 2] = [0x6600_0001, 0x6600_0003];

    /// Whether the attribute is one that MPI has.
    pub(crate) fn is_predefined(keyval: i32) -> bool {
        matches!(keyval as u32 >> 20, 0x644 | 0x660)
    }

    pub(crate) fn no_handle() -> Handle {
        0
    }

    pub(crate) fn no_file() -> File {
        std::ptr::null_mut()
    }

    macro_rules! handles {
        ($($name_in:ident $name_out:ident;)*) => {$(
            pub(crate) unsafe fn $name_in(number: i32) -> Handle {
                number
            }

            pub(crate) unsafe fn $name_out(handle: Handle) -> i32 {
                handle
            }
        )*};
    }

    handles! {
        comm_in comm_out;
        group_in group_out;
        type_in type_out;
        op_in op_out;
        request_in request_out;
        info_in info_out;
        errhandler_in errhandler_out;
        message_in message_out;
        win_in win_out;
        session_in session_out;
    }

    pub(crate) unsafe fn file_in(number: i32) -> File {
        // SAFETY: the library takes any number.
        unsafe { MPI_File_f2c(number) }
    }

    pub(crate) unsafe fn file_out(file: File) -> i32 {
        // SAFETY: the file comes from the library.
        unsafe { MPI_File_c2f(file) }
    }
}
