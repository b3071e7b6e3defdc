//! The libibverbs objects of a rail, in the order of their creation.

use super::port::Port;
use super::sys::*;
use crate::library::Library;
use nmad_engine::transfer::access::Atomics;
use rustix::fd::BorrowedFd;
use std::ffi::{CStr, c_int};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};

/// Capacity of the completion queue, and number of posted receive buffers.
const COMPLETIONS: c_int = 4096;
const RECEIVES: u32 = 1024;

/// Loads the library once; returns its functions.
///
/// # Errors
/// The library is missing or too old. The text has the remedy.
pub(super) fn library() -> Result<Functions, String> {
    static LIBRARY: OnceLock<Result<Functions, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).clone()
}

fn load() -> Result<Functions, String> {
    let remedy = "install libibverbs and its drivers (Debian: libibverbs1, ibverbs-providers)";
    let library = Library::open(c"libibverbs.so.1").map_err(|why| format!("{why} ({remedy})"))?;
    let missing = |name| format!("libibverbs.so.1 is too old: it has no {name} ({remedy})");
    // SAFETY: the types are those of the header.
    unsafe {
        Ok(Functions {
            get_device_list: library.function(c"ibv_get_device_list").map_err(missing)?,
            free_device_list: library.function(c"ibv_free_device_list").map_err(missing)?,
            get_device_name: library.function(c"ibv_get_device_name").map_err(missing)?,
            open_device: library.function(c"ibv_open_device").map_err(missing)?,
            close_device: library.function(c"ibv_close_device").map_err(missing)?,
            query_device: library.function(c"ibv_query_device").map_err(missing)?,
            query_port: library.function(c"ibv_query_port").map_err(missing)?,
            query_gid: library.function(c"ibv_query_gid").map_err(missing)?,
            alloc_pd: library.function(c"ibv_alloc_pd").map_err(missing)?,
            dealloc_pd: library.function(c"ibv_dealloc_pd").map_err(missing)?,
            reg_mr: library.function(c"ibv_reg_mr").map_err(missing)?,
            dereg_mr: library.function(c"ibv_dereg_mr").map_err(missing)?,
            create_comp_channel: library.function(c"ibv_create_comp_channel").map_err(missing)?,
            destroy_comp_channel: library.function(c"ibv_destroy_comp_channel").map_err(missing)?,
            create_cq: library.function(c"ibv_create_cq").map_err(missing)?,
            destroy_cq: library.function(c"ibv_destroy_cq").map_err(missing)?,
            get_cq_event: library.function(c"ibv_get_cq_event").map_err(missing)?,
            ack_cq_events: library.function(c"ibv_ack_cq_events").map_err(missing)?,
            create_srq: library.function(c"ibv_create_srq").map_err(missing)?,
            destroy_srq: library.function(c"ibv_destroy_srq").map_err(missing)?,
            create_qp: library.function(c"ibv_create_qp").map_err(missing)?,
            modify_qp: library.function(c"ibv_modify_qp").map_err(missing)?,
            destroy_qp: library.function(c"ibv_destroy_qp").map_err(missing)?,
        })
    }
}

/// An object of the library, destroyed when it is dropped.
pub(super) struct Object<T> {
    at: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T) -> c_int,
}

// SAFETY: a rail is used by one thread at a time, and the library's objects by any.
unsafe impl<T> Send for Object<T> {}
// SAFETY: only its address is read.
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    /// Takes ownership of the object that a call has created, or returns the system's error.
    pub(super) fn new(
        at: *mut T,
        destroy: unsafe extern "C" fn(*mut T) -> c_int,
    ) -> Result<Object<T>, io::Error> {
        NonNull::new(at).map(|at| Object { at, destroy }).ok_or_else(io::Error::last_os_error)
    }

    /// The object.
    pub(super) fn at(&self) -> *mut T {
        self.at.as_ptr()
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: it was created by the library, and is destroyed once, after the objects that use it.
        unsafe { (self.destroy)(self.at.as_ptr()) };
    }
}

/// The objects of a rail. The fields are destroyed in order.
pub(super) struct Device {
    pub(super) buffers: Object<Srq>,
    pub(super) completions: Object<Cq>,
    pub(super) channel: Object<Channel>,
    pub(super) domain: Object<Pd>,
    #[expect(dead_code, reason = "it lives as long as what was made with it")]
    context: Object<Context>,
    pub(super) functions: Functions,
    pub(super) port: Port,
    pub(super) attributes: PortAttr,
    /// Atomic operations of the device.
    pub(super) atomics: Atomics,
    /// This side's identifier (GID).
    pub(super) gid: [u64; 2],
}

impl Device {
    /// Opens the device of a port.
    ///
    /// # Errors
    /// The library is missing, the device is gone, or its port is down.
    pub(super) fn open(port: Port) -> Result<Arc<Device>, String> {
        let f = library()?;
        let failed = |what: &str, e: io::Error| {
            format!("cannot make {what} of RDMA device {}: {e}{}", port.device, remedy(&e))
        };
        let context = context(f, &port)?;
        let (mut attributes, mut gid, mut device) = (PortAttr::default(), [0; 2], DeviceAttr::default());
        // SAFETY: the device is open; both write into memory of their types.
        let answers = unsafe {
            let identifier = c_int::from(port.identifier);
            [
                (f.query_port)(context.at(), port.number, &raw mut attributes),
                (f.query_gid)(context.at(), port.number, identifier, &raw mut gid),
                (f.query_device)(context.at(), &raw mut device),
            ]
        };
        if answers != [0; 3] {
            return Err(format!("cannot query port {} of RDMA device {}", port.number, port.device));
        }
        if attributes.state != IBV_PORT_ACTIVE {
            let Port { device, number, .. } = &port;
            return Err(format!(
                "port {number} of RDMA device {device} is not active (is its cable plugged in, and its \
                 interface up? `rdma link` tells; InfiniBand needs a subnet manager)"
            ));
        }
        // SAFETY: each is created with objects that are open.
        let (domain, channel) = unsafe {
            (
                Object::new((f.alloc_pd)(context.at()), f.dealloc_pd).map_err(|e| failed("a domain", e))?,
                Object::new((f.create_comp_channel)(context.at()), f.destroy_comp_channel)
                    .map_err(|e| failed("a completion channel", e))?,
            )
        };
        // SAFETY: the objects are open; the descriptor is the channel's.
        let completions = unsafe {
            let fd = BorrowedFd::borrow_raw((*channel.at()).fd);
            rustix::io::ioctl_fionbio(fd, true).map_err(|e| failed("a completion channel", e.into()))?;
            let cq = (f.create_cq)(context.at(), COMPLETIONS, ptr::null_mut(), channel.at(), 0);
            Object::new(cq, f.destroy_cq).map_err(|e| failed("a completion queue", e))?
        };
        let mut attr =
            SrqInitAttr { srq_context: ptr::null_mut(), max_wr: RECEIVES, max_sge: 1, srq_limit: 0 };
        // SAFETY: the objects are open.
        let buffers = unsafe { Object::new((f.create_srq)(domain.at(), &raw mut attr), f.destroy_srq) };
        let buffers = buffers.map_err(|e| failed("a shared receive queue", e))?;
        let functions = f;
        Ok(Arc::new(Device {
            buffers,
            completions,
            channel,
            domain,
            context,
            functions,
            port,
            attributes,
            atomics: match device.atomic_cap {
                IBV_ATOMIC_HCA => Atomics::Adapter,
                IBV_ATOMIC_GLOB => Atomics::Processor,
                _ => Atomics::None,
            },
            gid,
        }))
    }
}

/// The remedy if a limit of this process is the cause.
pub(super) fn remedy(e: &io::Error) -> &'static str {
    match e.raw_os_error() {
        Some(libc::ENOMEM | libc::EAGAIN) => {
            " (the limit of locked memory is too low: `ulimit -l` shows it; raise it in \
             /etc/security/limits.conf, or start the container with --ulimit memlock=-1)"
        }
        Some(libc::EACCES | libc::EPERM) => " (may this user open /dev/infiniband/uverbs*?)",
        _ => "",
    }
}

/// Text for the status of a failed operation.
pub(super) fn failure(status: u32) -> String {
    match status {
        IBV_WC_RETRY_EXC_ERR => "does not answer any more (has it died, or is its port down?)".into(),
        IBV_WC_WR_FLUSH_ERR => "lost the queue pair to it here (was the device removed or reset?)".into(),
        IBV_WC_REM_ACCESS_ERR => {
            "does not give that memory any more (has it given the message up, or freed the window?)".into()
        }
        status => format!("cannot be reached: its queue pair failed with status {status} (ibv_wc_status)"),
    }
}

/// Opens a device by its name.
fn context(f: Functions, port: &Port) -> Result<Object<Context>, String> {
    let mut count = 0;
    // SAFETY: the call writes a number and returns a list, or null.
    let list = unsafe { (f.get_device_list)(&raw mut count) };
    if list.is_null() {
        let e = io::Error::last_os_error();
        return Err(format!("libibverbs lists no devices: {e} (is the module ib_uverbs loaded?)"));
    }
    // SAFETY: the list has that many entries, which live until it is freed.
    let found = unsafe {
        let devices = std::slice::from_raw_parts(list, usize::try_from(count).unwrap_or(0));
        let is_wanted =
            |at: &&*mut _| CStr::from_ptr((f.get_device_name)(**at)).to_bytes() == port.device.as_bytes();
        devices.iter().find(is_wanted).map(|&at| Object::new((f.open_device)(at), f.close_device))
    };
    // SAFETY: it came from the library; an open device does not need it.
    unsafe { (f.free_device_list)(list) };
    let name = &port.device;
    match found {
        Some(Ok(context)) => Ok(context),
        Some(Err(e)) => Err(format!("cannot open RDMA device {name}: {e}{}", remedy(&e))),
        None => Err(format!(
            "libibverbs has no driver for RDMA device {name} (Debian: install ibverbs-providers), or the \
             container lacks /dev/infiniband"
        )),
    }
}
