//! The library of OTF2, opened at run time: its functions that write an archive, as its headers (3.0) and the
//! manual of OTF2 describe them. All arguments passed here outlive the call.
#![allow(unsafe_code)]

use nmad_drivers::library::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

/// Names of the library, its own and Debian's, by the versions of its interface that have these functions: 3
/// and 2. Version 2 takes one argument less where a definition has grown, and does not look at the last one.
const NAMES: [&CStr; 5] = [
    c"libotf2.so.10",
    c"libopen-trace-format2.so.10",
    c"libotf2.so",
    c"libotf2.so.9",
    c"libopen-trace-format2.so.9",
];

/// An archive, a writer, or a list of attributes: never looked into.
type Handle = *mut c_void;
type Code = c_int;

/// No such thing: the value of a reference.
pub(super) const NONE: u32 = u32::MAX;

const NO_TIME: u64 = u64::MAX;
const CHUNK_EVENTS: u64 = 1 << 20;
const CHUNK_DEFINITIONS: u64 = 4 << 20;
// Of its enumerations.
const WRITE: u8 = 0;
const POSIX: u8 = 1;
const UNCOMPRESSED: u8 = 1;
const FLUSH: u8 = 1;
const PROCESS: u8 = 1;
const THREAD: u8 = 1;
const MPI: u8 = 4;
const FUNCTION: u8 = 1;
const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const STRING: u8 = 11;
const UINT64: u8 = 4;
const METRIC_OTHER: u8 = 0;
const ABSOLUTE_POINT: u8 = 1 | 1 << 4;
const BINARY: u8 = 0;
const ASYNCHRONOUS: u8 = 2;
const ABSTRACT: u8 = 1;

/// Asked before what has gathered is written, and after.
#[repr(C)]
struct Flush {
    before: extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8,
    after: *const c_void,
}

extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    FLUSH
}

static FLUSHES: FlushEntry = FlushEntry(Flush { before: flush, after: null() });

struct FlushEntry(Flush);

// SAFETY: nothing ever changes it.
unsafe impl Sync for FlushEntry {}

/// A table of functions by the names that follow `OTF2_`.
macro_rules! functions {
    ($($field:ident: $name:literal fn($($argument:ty),*) -> $result:ty;)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn of(library: Library) -> Result<Functions, String> {
                // SAFETY: the types are those of the library's headers.
                unsafe { Ok(Functions { $($field: library.function($name)?,)* }) }
            }
        }
    };
}

functions! {
    open: c"OTF2_Archive_Open" fn(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Handle;
    set_flush: c"OTF2_Archive_SetFlushCallbacks" fn(Handle, *const Flush, *mut c_void) -> Code;
    set_serial: c"OTF2_Archive_SetSerialCollectiveCallbacks" fn(Handle) -> Code;
    open_events: c"OTF2_Archive_OpenEvtFiles" fn(Handle) -> Code;
    close_events: c"OTF2_Archive_CloseEvtFiles" fn(Handle) -> Code;
    open_definitions: c"OTF2_Archive_OpenDefFiles" fn(Handle) -> Code;
    close_definitions: c"OTF2_Archive_CloseDefFiles" fn(Handle) -> Code;
    events_of: c"OTF2_Archive_GetEvtWriter" fn(Handle, u64) -> Handle;
    end_events_of: c"OTF2_Archive_CloseEvtWriter" fn(Handle, Handle) -> Code;
    definitions_of: c"OTF2_Archive_GetDefWriter" fn(Handle, u64) -> Handle;
    end_definitions_of: c"OTF2_Archive_CloseDefWriter" fn(Handle, Handle) -> Code;
    definitions: c"OTF2_Archive_GetGlobalDefWriter" fn(Handle) -> Handle;
    close: c"OTF2_Archive_Close" fn(Handle) -> Code;
    describe: c"OTF2_Error_GetDescription" fn(Code) -> *const c_char;
    enter: c"OTF2_EvtWriter_Enter" fn(Handle, Handle, u64, u32) -> Code;
    leave: c"OTF2_EvtWriter_Leave" fn(Handle, Handle, u64, u32) -> Code;
    send: c"OTF2_EvtWriter_MpiSend" fn(Handle, Handle, u64, u32, u32, u32, u64) -> Code;
    recv: c"OTF2_EvtWriter_MpiRecv" fn(Handle, Handle, u64, u32, u32, u32, u64) -> Code;
    metric: c"OTF2_EvtWriter_Metric" fn(Handle, Handle, u64, u32, u8, *const u8, *const u64) -> Code;
    attributes: c"OTF2_AttributeList_New" fn() -> Handle;
    add_string: c"OTF2_AttributeList_AddStringRef" fn(Handle, u32, u32) -> Code;
    drop_attributes: c"OTF2_AttributeList_Delete" fn(Handle) -> Code;
    clock: c"OTF2_GlobalDefWriter_WriteClockProperties" fn(Handle, u64, u64, u64, u64) -> Code;
    string: c"OTF2_GlobalDefWriter_WriteString" fn(Handle, u32, *const c_char) -> Code;
    attribute: c"OTF2_GlobalDefWriter_WriteAttribute" fn(Handle, u32, u32, u32, u8) -> Code;
    region: c"OTF2_GlobalDefWriter_WriteRegion"
        fn(Handle, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> Code;
    node: c"OTF2_GlobalDefWriter_WriteSystemTreeNode" fn(Handle, u32, u32, u32, u32) -> Code;
    process: c"OTF2_GlobalDefWriter_WriteLocationGroup" fn(Handle, u32, u32, u8, u32, u32) -> Code;
    location: c"OTF2_GlobalDefWriter_WriteLocation" fn(Handle, u64, u32, u8, u64, u32) -> Code;
    group: c"OTF2_GlobalDefWriter_WriteGroup" fn(Handle, u32, u32, u8, u8, u32, u32, *const u64) -> Code;
    comm: c"OTF2_GlobalDefWriter_WriteComm" fn(Handle, u32, u32, u32, u32, u32) -> Code;
    member: c"OTF2_GlobalDefWriter_WriteMetricMember"
        fn(Handle, u32, u32, u32, u8, u8, u8, u8, i64, u32) -> Code;
    class: c"OTF2_GlobalDefWriter_WriteMetricClass" fn(Handle, u32, u8, *const u32, u8, u8) -> Code;
}

/// An archive that is being written. One that is dropped before its [end](Archive::end) cannot be read.
pub(super) struct Archive {
    functions: Functions,
    archive: Handle,
}

/// What happens at a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Enter {
        region: u32,
    },
    Leave {
        region: u32,
    },
    /// To a rank; the attribute and its string.
    Send {
        to: u32,
        tag: u32,
        len: u64,
        attribute: (u32, u32),
    },
    Recv {
        from: u32,
        tag: u32,
        len: u64,
    },
    Metric {
        class: u32,
        value: u64,
    },
}

/// The functions of the library.
///
/// # Errors
/// It is not installed, or lacks one; with the remedy.
fn functions() -> Result<Functions, String> {
    let mut why = String::new();
    for name in NAMES {
        match Library::open(name).map(Functions::of) {
            Ok(Ok(functions)) => return Ok(functions),
            Ok(Err(missing)) => why = format!("{} has no {missing}", name.to_string_lossy()),
            Err(refused) if why.is_empty() => why = refused,
            Err(_) => {}
        }
    }
    Err(format!(
        "OTF2 is written by its own library, of which none was found ({why}): install it (Debian and \
         Ubuntu: libopen-trace-format2-10; Spack: otf2), name its folder in LD_LIBRARY_PATH, or use \
         --paraver or --json"
    ))
}

/// Whether the library is there.
///
/// # Errors
/// As [`Archive::begin`].
pub(super) fn is_there() -> Result<(), String> {
    functions().map(drop)
}

impl Archive {
    /// Begins `traces.otf2` in a folder.
    ///
    /// # Errors
    /// The library is not installed, or cannot write there.
    pub(super) fn begin(folder: &Path) -> Result<Archive, String> {
        let functions = functions()?;
        let path = CString::new(folder.as_os_str().as_encoded_bytes());
        let path = path.map_err(|_| format!("{} has a zero byte in its name", folder.display()))?;
        let (events, definitions) = (CHUNK_EVENTS, CHUNK_DEFINITIONS);
        // SAFETY: both names end with a zero byte.
        let archive = unsafe {
            (functions.open)(
                path.as_ptr(),
                c"traces".as_ptr(),
                WRITE,
                events,
                definitions,
                POSIX,
                UNCOMPRESSED,
            )
        };
        if archive.is_null() {
            return Err(format!("the library of OTF2 cannot begin an archive in {}", folder.display()));
        }
        let this = Archive { functions, archive };
        let Archive { functions: f, .. } = &this;
        // SAFETY: the archive is open, and the callback lives as long as the program.
        unsafe {
            this.check((f.set_flush)(archive, &raw const FLUSHES.0, null_mut()))?;
            this.check((f.set_serial)(archive))?;
            this.check((f.open_events)(archive))?;
        }
        Ok(this)
    }

    fn check(&self, code: Code) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it gives a text for any number.
        let text = unsafe { CStr::from_ptr((self.functions.describe)(code)) };
        Err(format!("the library of OTF2 says: {}", text.to_string_lossy()))
    }

    /// Writes what happens at a location, in the order of time.
    pub(super) fn events(&self, location: u64, list: &[(u64, What)]) -> Result<(), String> {
        let (f, archive) = (&self.functions, self.archive);
        // SAFETY: the archive is open; writer and list are used between their beginning and their end.
        unsafe {
            let writer = (f.events_of)(archive, location);
            let attributes = (f.attributes)();
            if writer.is_null() || attributes.is_null() {
                return Err("the library of OTF2 gives no writer".into());
            }
            for &(at, what) in list {
                let none = null_mut();
                self.check(match what {
                    What::Enter { region } => (f.enter)(writer, none, at, region),
                    What::Leave { region } => (f.leave)(writer, none, at, region),
                    What::Send { to, tag, len, attribute: (attribute, text) } => {
                        // The list is empty again after the event.
                        self.check((f.add_string)(attributes, attribute, text))?;
                        (f.send)(writer, attributes, at, to, 0, tag, len)
                    }
                    What::Recv { from, tag, len } => (f.recv)(writer, none, at, from, 0, tag, len),
                    What::Metric { class, value } => {
                        (f.metric)(writer, none, at, class, 1, &UINT64, &raw const value)
                    }
                })?;
            }
            self.check((f.drop_attributes)(attributes))?;
            self.check((f.end_events_of)(archive, writer))
        }
    }

    /// Ends the events: then the definitions, which say what their numbers mean. Each of these locations has
    /// definitions of its own, which are empty.
    pub(super) fn definitions(&self, locations: &[u64]) -> Result<Definitions<'_>, String> {
        let (f, archive) = (&self.functions, self.archive);
        // SAFETY: the archive is open, and writers are used between their beginning and their end.
        unsafe {
            self.check((f.close_events)(archive))?;
            self.check((f.open_definitions)(archive))?;
            for &location in locations {
                let writer = (f.definitions_of)(archive, location);
                self.check((f.end_definitions_of)(archive, writer))?;
            }
            self.check((f.close_definitions)(archive))?;
            let writer = (f.definitions)(archive);
            if writer.is_null() {
                return Err("the library of OTF2 gives no writer of definitions".into());
            }
            Ok(Definitions { archive: self, writer })
        }
    }

    /// Writes what is left.
    pub(super) fn end(self) -> Result<(), String> {
        // SAFETY: the archive is open, and nobody uses it any more.
        let code = unsafe { (self.functions.close)(self.archive) };
        self.check(code)
    }
}

/// What the numbers of events mean.
pub(super) struct Definitions<'a> {
    archive: &'a Archive,
    writer: Handle,
}

impl Definitions<'_> {
    fn write(&self, write: impl FnOnce(&Functions, Handle) -> Code) -> Result<(), String> {
        self.archive.check(write(&self.archive.functions, self.writer))
    }

    /// Times are nanoseconds, and none is later than this.
    pub(super) fn clock(&self, end_ns: u64) -> Result<(), String> {
        // SAFETY: numbers only, here and below where nothing else is said.
        self.write(|f, w| unsafe { (f.clock)(w, 1_000_000_000, 0, end_ns, NO_TIME) })
    }

    pub(super) fn string(&self, me: u32, text: &str) -> Result<(), String> {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the text ends with a zero byte, and is copied.
        self.write(|f, w| unsafe { (f.string)(w, me, text.as_ptr()) })
    }

    /// An attribute whose values are strings.
    pub(super) fn attribute(&self, me: u32, name: u32) -> Result<(), String> {
        // SAFETY: numbers only.
        self.write(|f, w| unsafe { (f.attribute)(w, me, name, name, STRING) })
    }

    /// A function of MPI.
    pub(super) fn region(&self, me: u32, name: u32) -> Result<(), String> {
        // SAFETY: numbers only.
        self.write(|f, w| unsafe { (f.region)(w, me, name, name, NONE, FUNCTION, MPI, 0, NONE, 0, 0) })
    }

    /// The job, or whatever ranks belong to.
    pub(super) fn node(&self, me: u32, name: u32) -> Result<(), String> {
        // SAFETY: numbers only.
        self.write(|f, w| unsafe { (f.node)(w, me, name, name, NONE) })
    }

    /// A rank, of the first node.
    pub(super) fn process(&self, me: u32, name: u32) -> Result<(), String> {
        // SAFETY: numbers only.
        self.write(|f, w| unsafe { (f.process)(w, me, name, PROCESS, 0, NONE) })
    }

    /// A thread of a rank, with as many events.
    pub(super) fn thread(&self, me: u64, name: u32, process: u32, events: u64) -> Result<(), String> {
        // SAFETY: numbers only.
        self.write(|f, w| unsafe { (f.location)(w, me, name, THREAD, events, process) })
    }

    /// The communicator 0 of all ranks, whose messages are written at these locations; groups 0 and 1.
    pub(super) fn world(&self, name: u32, locations: &[u64]) -> Result<(), String> {
        let ranks: Vec<u64> = (0..locations.len() as u64).collect();
        let count = locations.len() as u32;
        // SAFETY: both lists have that length, and are copied.
        self.write(|f, w| unsafe {
            (f.group)(w, 0, name, COMM_LOCATIONS, MPI, 0, count, locations.as_ptr())
        })?;
        // SAFETY: as above.
        self.write(|f, w| unsafe { (f.group)(w, 1, name, COMM_GROUP, MPI, 0, count, ranks.as_ptr()) })?;
        // SAFETY: numbers only.
        self.write(|f, w| unsafe { (f.comm)(w, 0, name, 1, NONE, 0) })
    }

    /// A counter in bytes; its class has its number.
    pub(super) fn counter(&self, me: u32, name: u32, unit: u32) -> Result<(), String> {
        // SAFETY: numbers only.
        self.write(|f, w| unsafe {
            (f.member)(w, me, name, name, METRIC_OTHER, ABSOLUTE_POINT, UINT64, BINARY, 0, unit)
        })?;
        // SAFETY: a list of one number.
        self.write(|f, w| unsafe { (f.class)(w, me, 1, &raw const me, ASYNCHRONOUS, ABSTRACT) })
    }
}
