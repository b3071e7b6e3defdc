//! Loads a shared library and reads its table of strategies.

use super::watchdog::Calls;
use nmad_drivers::library::Library;
use nmad_plugin::{ENTRY, Offered, PlugIn};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The type of the function `nmad_strategies` of a plug-in.
type Entry = extern "C" fn() -> *const PlugIn;

/// Loads a library, which stays loaded until the process ends, and returns its strategies.
///
/// # Errors
/// The library cannot be loaded or is not a plug-in. The text is a sentence without its subject, the file.
pub(super) fn strategies_of(file: &Path) -> Result<Offered, String> {
    let name = CString::new(file.as_os_str().as_bytes()).map_err(|_| "has a zero byte in its name")?;
    Calls::to_load(&file.display().to_string()).during(|| {
        let library = Library::open(&name).map_err(|why| {
            format!("cannot be loaded ({why}); compile it for this machine with cc -shared -fPIC")
        })?;
        // SAFETY: `nmad.h` declares the function with this type.
        let entry: Entry = unsafe { library.function(ENTRY) }.map_err(|symbol| {
            format!("is no plug-in: it has no function {symbol}; nmad.h says what it returns")
        })?;
        // SAFETY: the plug-in conforms to `nmad.h`, and stays loaded.
        unsafe { Offered::read(entry()) }
    })
}
