//! The libfabric objects of a rail, in the order of their creation. The library is called only here and in
//! [`super::adapter`].

use super::provider::{Bound, Provider};
use super::sys::*;
use crate::library::Library;
use std::ffi::{CStr, CString, c_int, c_void};
use std::net::IpAddr;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

/// Oldest supported version.
const OLDEST: (u32, u32) = (1, 11);
/// Capacity of the completion queue, if the provider has no preference.
const COMPLETIONS: usize = 4096;
/// Longest name of an endpoint in bytes.
const NAME: usize = 512;

/// Loads the library once; returns its functions.
///
/// # Errors
/// The library is missing or too old. The text has the remedy.
pub(super) fn library() -> Result<Functions, String> {
    static LIBRARY: OnceLock<Result<Functions, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).clone()
}

fn load() -> Result<Functions, String> {
    let remedy = "install libfabric (Debian: libfabric1)";
    let library = Library::open(c"libfabric.so.1").map_err(|why| format!("{why} ({remedy})"))?;
    let missing = |name| format!("libfabric.so.1 has no {name} ({remedy})");
    // SAFETY: the types are those of the header.
    let functions = unsafe {
        Functions {
            version: library.function(c"fi_version").map_err(missing)?,
            getinfo: library.function(c"fi_getinfo").map_err(missing)?,
            freeinfo: library.function(c"fi_freeinfo").map_err(missing)?,
            dupinfo: library.function(c"fi_dupinfo").map_err(missing)?,
            fabric: library.function(c"fi_fabric").map_err(missing)?,
            strerror: library.function(c"fi_strerror").map_err(missing)?,
        }
    };
    // SAFETY: the function takes no arguments.
    let version = unsafe { (functions.version)() };
    let (major, minor) = (version >> 16, version & 0xffff);
    if (major, minor) < OLDEST {
        let (want, least) = OLDEST;
        return Err(format!("libfabric {major}.{minor} is too old: {want}.{least} is needed ({remedy})"));
    }
    Ok(functions)
}

/// Text for a status of the library.
pub(super) fn status_text(functions: &Functions, status: isize) -> String {
    // SAFETY: the function takes any number, and returns a text that lives as long as the library.
    let text = unsafe { (functions.strerror)(status.unsigned_abs() as c_int).as_ref() };
    // SAFETY: the text lives as long as the library.
    text.map_or_else(
        || status.to_string(),
        |text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    )
}

/// An object of the library, closed when it is dropped.
pub(super) struct Object<T>(NonNull<T>);

// SAFETY: a rail is used by one thread at a time, as `FI_THREAD_DOMAIN` requires.
unsafe impl<T> Send for Object<T> {}
// SAFETY: shared only by parts of one rail, which one thread uses at a time.
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    /// Takes ownership of the object that a call has created.
    pub(super) fn new(at: *mut T) -> Result<Object<T>, String> {
        NonNull::new(at).map(Object).ok_or_else(|| "libfabric returned no object".into())
    }

    /// The object.
    pub(super) fn at(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// Every object begins with its `struct fid`.
    pub(super) fn fid(&self) -> *mut Fid {
        self.0.as_ptr().cast()
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: the object is open, and objects created with it were closed before (order of fields).
        unsafe {
            let fid = self.fid();
            ((*(*fid).ops).close)(fid);
        }
    }
}

/// Description of a provider's offer, freed when it is dropped.
pub(super) struct Info {
    functions: Functions,
    at: NonNull<FiInfo>,
}

// SAFETY: it has no other owner.
unsafe impl Send for Info {}

impl Info {
    pub(super) fn at(&self) -> *mut FiInfo {
        self.at.as_ptr()
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: it came from the library, and is freed once.
        unsafe { (self.functions.freeinfo)(self.at.as_ptr()) };
    }
}

/// The objects of a rail. The fields are closed in order.
pub(super) struct Fabric {
    pub(super) endpoint: Option<Object<FidEp>>,
    pub(super) addresses: Object<FidAv>,
    pub(super) completions: Object<FidCq>,
    /// Becomes readable when there is a completion; negative: the provider has no descriptor.
    pub(super) descriptor: c_int,
    pub(super) domain: Object<FidDomain>,
    pub(super) fabric: Object<FidFabric>,
    pub(super) info: Info,
    pub(super) functions: Functions,
}

impl Fabric {
    /// Opens a provider on an address of this machine.
    ///
    /// # Errors
    /// The library or the provider is missing, or lacks a required feature.
    pub(super) fn open(provider: Provider, address: IpAddr) -> Result<Fabric, String> {
        let functions = library()?;
        let info = info(functions, provider, Some(address))?;
        let failed = |what: &str, status: c_int| {
            format!(
                "libfabric cannot open {what} of {}: {}",
                provider.name,
                status_text(&functions, status as isize)
            )
        };
        let (mut fabric, mut domain, mut av, mut cq) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the attributes were filled in by the library, and live as long as `info`.
        let status =
            unsafe { (functions.fabric)((*info.at()).fabric_attr, &raw mut fabric, ptr::null_mut()) };
        let fabric = ok(status, || Object::new(fabric)).map_err(|s| failed("a fabric", s))??;
        // SAFETY: the fabric is open.
        let status = unsafe {
            ((*(*fabric.at()).ops).domain)(fabric.at(), info.at(), &raw mut domain, ptr::null_mut())
        };
        let domain = ok(status, || Object::new(domain)).map_err(|s| failed("a domain", s))??;
        // SAFETY: the attributes were filled in by the library.
        let kind = match unsafe { (*(*info.at()).domain_attr).av_type } {
            FI_AV_UNSPEC => FI_AV_MAP,
            kind => kind,
        };
        let (name, map_addr) = (ptr::null(), ptr::null_mut());
        let mut attr = FiAvAttr { kind, rx_ctx_bits: 0, count: 64, ep_per_node: 0, name, map_addr, flags: 0 };
        // SAFETY: the domain is open.
        let status = unsafe {
            ((*(*domain.at()).ops).av_open)(domain.at(), &raw mut attr, &raw mut av, ptr::null_mut())
        };
        let addresses = ok(status, || Object::new(av)).map_err(|s| failed("a table of addresses", s))??;
        let mut status = -1;
        for wait_obj in [FI_WAIT_FD, FI_WAIT_NONE] {
            let (format, wait_set) = (FI_CQ_FORMAT_MSG, ptr::null_mut());
            let (flags, signaling_vector, wait_cond) = (0, 0, 0);
            let size = COMPLETIONS;
            let mut attr = FiCqAttr { size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set };
            // SAFETY: the domain is open.
            status = unsafe {
                ((*(*domain.at()).ops).cq_open)(domain.at(), &raw mut attr, &raw mut cq, ptr::null_mut())
            };
            if status == 0 {
                break;
            }
        }
        let completions = ok(status, || Object::new(cq)).map_err(|s| failed("a completion queue", s))??;
        let descriptor = descriptor(&completions);
        let endpoint = None;
        let mut opened =
            Fabric { endpoint, addresses, completions, descriptor, domain, fabric, info, functions };
        opened.open_endpoint()?;
        Ok(opened)
    }

    /// Opens the endpoint, which serves all peers.
    ///
    /// # Errors
    /// The provider refuses.
    pub(super) fn open_endpoint(&mut self) -> Result<(), String> {
        let failed = |what: &str, status: c_int| {
            format!("libfabric cannot {what} an endpoint: {}", status_text(&self.functions, status as isize))
        };
        let mut at = ptr::null_mut();
        let domain = self.domain.at();
        // SAFETY: the domain is open, and was opened with `info`.
        let status =
            unsafe { ((*(*domain).ops).endpoint)(domain, self.info.at(), &raw mut at, ptr::null_mut()) };
        let endpoint = ok(status, || Object::new(at)).map_err(|s| failed("open", s))??;
        let parts = [(self.addresses.fid(), 0), (self.completions.fid(), FI_TRANSMIT | FI_RECV)];
        for (part, flags) in parts {
            let fid = endpoint.fid();
            // SAFETY: both are open.
            let status = unsafe { ((*(*fid).ops).bind)(fid, part, flags) };
            ok(status, || ()).map_err(|s| failed("bind", s))?;
        }
        control(endpoint.fid(), FI_ENABLE).map_err(|s| failed("enable", s))?;
        self.endpoint = Some(endpoint);
        Ok(())
    }

    /// The name of the endpoint, which peers need.
    ///
    /// # Errors
    /// The provider has none.
    pub(super) fn name(&self) -> Result<Vec<u8>, String> {
        let Some(endpoint) = &self.endpoint else { return Err("the endpoint has ended".into()) };
        let mut name = vec![0u8; NAME];
        let mut len = name.len();
        // SAFETY: the endpoint is open, and writes no more than `len` bytes.
        let status = unsafe {
            ((*(*endpoint.at()).cm).getname)(endpoint.fid(), name.as_mut_ptr().cast(), &raw mut len)
        };
        ok(status, || ()).map_err(|s| {
            format!(
                "libfabric cannot query the name of an endpoint: {}",
                status_text(&self.functions, s as isize)
            )
        })?;
        name.truncate(len);
        Ok(name)
    }

    /// Adds a peer's endpoint to the address table; returns its address.
    ///
    /// # Errors
    /// The name is invalid for this provider.
    pub(super) fn find(&self, name: &[u8]) -> Result<u64, String> {
        let (av, mut address) = (self.addresses.at(), FI_ADDR_UNSPEC);
        // Pad the name: the library reads as many bytes as the provider's names have.
        let mut whole = name.to_vec();
        whole.resize(NAME, 0);
        // SAFETY: the table is open; the padded name is longer than any name.
        let count = unsafe {
            ((*(*av).ops).insert)(av, whole.as_ptr().cast(), 1, &raw mut address, 0, ptr::null_mut())
        };
        match count {
            1 => Ok(address),
            status => {
                let why = status_text(&self.functions, status as isize);
                Err(format!("has an address that libfabric cannot use: {why}"))
            }
        }
    }
}

/// Queries the offer of a provider on this machine.
///
/// # Errors
/// There is none; the text has the remedy.
pub(super) fn info(
    functions: Functions,
    provider: Provider,
    address: Option<IpAddr>,
) -> Result<Info, String> {
    let hints = hints(functions, provider).ok_or("libfabric has no memory left")?;
    let node = address.filter(|_| provider.bound == Bound::ToAddress);
    let node = node.and_then(|address| CString::new(address.to_string()).ok());
    let flags = if node.is_some() { FI_SOURCE | FI_NUMERICHOST } else { 0 };
    let node = node.as_ref().map_or(ptr::null(), |node| node.as_ptr());
    let mut found = ptr::null_mut();
    // SAFETY: all arguments live until the call returns.
    let status =
        unsafe { (functions.getinfo)(VERSION, node, ptr::null(), flags, hints.at(), &raw mut found) };
    match NonNull::new(found) {
        Some(at) if status == 0 => Ok(Info { functions, at }),
        _ => Err(format!(
            "libfabric offers no provider {} here: {} (`fi_info -p '{}'` lists what it offers)",
            provider.name,
            status_text(&functions, status as isize),
            provider.name
        )),
    }
}

/// The features that a rail requires of a provider.
fn hints(functions: Functions, provider: Provider) -> Option<Info> {
    // SAFETY: with a null argument the function creates an empty description with all its parts.
    let hints = Info { functions, at: NonNull::new(unsafe { (functions.dupinfo)(ptr::null()) })? };
    let name = CString::new(provider.name).ok()?;
    // SAFETY: the parts exist. The library frees the name with `free`, and `strdup` allocates it
    // accordingly.
    unsafe {
        let info = hints.at();
        let rma = if provider.reads { FI_RMA | FI_READ | FI_REMOTE_READ } else { 0 };
        (*info).caps = FI_MSG | FI_SEND | FI_RECV | rma;
        (*info).mode = FI_CONTEXT | FI_CONTEXT2;
        (*(*info).ep_attr).kind = FI_EP_RDM;
        (*(*info).tx_attr).msg_order = FI_ORDER_SAS;
        (*(*info).rx_attr).msg_order = FI_ORDER_SAS;
        (*(*info).domain_attr).threading = FI_THREAD_DOMAIN;
        (*(*info).domain_attr).mr_mode =
            FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
        (*(*info).fabric_attr).prov_name = libc::strdup(name.as_ptr());
    }
    Some(hints)
}

/// Converts a status; `result` is evaluated on success.
fn ok<T>(status: c_int, result: impl FnOnce() -> T) -> Result<T, c_int> {
    if status == 0 { Ok(result()) } else { Err(status) }
}

/// Calls a control command without an argument.
pub(super) fn control(fid: *mut Fid, command: c_int) -> Result<(), c_int> {
    // SAFETY: the callers' objects are open.
    ok(unsafe { ((*(*fid).ops).control)(fid, command, ptr::null_mut()) }, || ())
}

/// The descriptor of a completion queue; negative: it has none.
fn descriptor(completions: &Object<FidCq>) -> c_int {
    let (fid, mut descriptor) = (completions.fid(), -1);
    let at: *mut c_int = &raw mut descriptor;
    // SAFETY: the queue is open, and writes a descriptor if it was created with one.
    let status = unsafe { ((*(*fid).ops).control)(fid, FI_GETWAIT, at.cast::<c_void>()) };
    if status == 0 { descriptor } else { -1 }
}
