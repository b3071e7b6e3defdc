//! Libraries of C that are opened at run time, where they exist: nothing is needed to build.

use std::ffi::{CStr, c_void};

/// A library that was opened. It stays loaded: its threads and handlers may outlive any use of ours.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    handle: *mut c_void,
}

impl Library {
    /// Opens a library by its name.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(name: &CStr) -> Result<Library, String> {
        // SAFETY: loading runs the library's initialisers, which is what was asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: an error has just happened, so there is a text, which is copied before the next call.
            let why = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(why.to_string_lossy().into_owned());
        }
        Ok(Library { handle })
    }

    /// A function of the library; its name, if it has none.
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
        // SAFETY: by the contract; it is not null.
        Ok(unsafe { std::mem::transmute_copy(&at) })
    }
}
