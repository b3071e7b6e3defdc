//! C libraries that are loaded at run time if present, so that building needs none of them.

use std::ffi::{CStr, c_void};

/// A loaded library. It is never unloaded: its threads and handlers may outlive our use of it.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    handle: *mut c_void,
}

impl Library {
    /// Loads a library by its name.
    ///
    /// # Errors
    /// The text of `dlerror`.
    pub fn open(name: &CStr) -> Result<Library, String> {
        // SAFETY: loading runs the library's initialisers, which the caller asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: `dlopen` has just failed, so there is a text; it is copied before the next call.
            let why = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(why.to_string_lossy().into_owned());
        }
        Ok(Library { handle })
    }

    /// Looks up a function of the library; the error is the name of a missing function.
    ///
    /// # Safety
    /// The function has the type `F`, a pointer to a function.
    pub unsafe fn function<F: Copy>(self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the library is loaded.
        let at = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if at.is_null() {
            return Err(name.to_string_lossy().into_owned());
        }
        // SAFETY: the pointer is not null, and the caller guarantees its type.
        Ok(unsafe { std::mem::transmute_copy(&at) })
    }
}
