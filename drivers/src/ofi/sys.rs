//! Declarations of libfabric's headers (`rdma/fabric.h`, `fi_domain.h`, `fi_endpoint.h`, `fi_eq.h`,
//! `fi_rma.h` and `fi_cm.h` of version 1.17), as far as they are used: structures and constants. Most
//! functions of libfabric are entries of tables that its objects point to. Later versions only append
//! fields.

use std::ffi::{c_char, c_int, c_void};

/// Objects whose content is not accessed.
type Opaque = c_void;

pub(super) const FI_MSG: u64 = 1 << 1;
pub(super) const FI_RMA: u64 = 1 << 2;
pub(super) const FI_READ: u64 = 1 << 8;
pub(super) const FI_RECV: u64 = 1 << 10;
pub(super) const FI_SEND: u64 = 1 << 11;
pub(super) const FI_TRANSMIT: u64 = FI_SEND;
pub(super) const FI_REMOTE_READ: u64 = 1 << 12;
pub(super) const FI_NUMERICHOST: u64 = 1 << 55;
pub(super) const FI_SOURCE: u64 = 1 << 57;
pub(super) const FI_CONTEXT: u64 = 1 << 59;
pub(super) const FI_CONTEXT2: u64 = 1 << 52;
pub(super) const FI_ORDER_SAS: u64 = 1 << 8;
pub(super) const FI_MR_LOCAL: c_int = 1 << 2;
pub(super) const FI_MR_VIRT_ADDR: c_int = 1 << 4;
pub(super) const FI_MR_ALLOCATED: c_int = 1 << 5;
pub(super) const FI_MR_PROV_KEY: c_int = 1 << 6;
pub(super) const FI_MR_ENDPOINT: c_int = 1 << 9;
pub(super) const FI_AV_UNSPEC: c_int = 0;
pub(super) const FI_AV_MAP: c_int = 1;
pub(super) const FI_THREAD_DOMAIN: c_int = 3;
pub(super) const FI_EP_RDM: c_int = 3;
pub(super) const FI_WAIT_NONE: c_int = 0;
pub(super) const FI_WAIT_FD: c_int = 3;
pub(super) const FI_CQ_FORMAT_MSG: c_int = 2;
pub(super) const FI_GETWAIT: c_int = 5;
pub(super) const FI_ENABLE: c_int = 6;
pub(super) const FI_EAVAIL: isize = 259;
pub(super) const FI_ADDR_UNSPEC: u64 = u64::MAX;

/// The requested version of the interface: 1.11, of 2020.
pub(super) const VERSION: u32 = 1 << 16 | 11;

#[repr(C)]
pub(super) struct FiTxAttr {
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) op_flags: u64,
    pub(super) msg_order: u64,
    pub(super) comp_order: u64,
    pub(super) inject_size: usize,
    pub(super) size: usize,
    pub(super) iov_limit: usize,
    pub(super) rma_iov_limit: usize,
}

#[repr(C)]
pub(super) struct FiRxAttr {
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) op_flags: u64,
    pub(super) msg_order: u64,
    pub(super) comp_order: u64,
    pub(super) total_buffered_recv: usize,
    pub(super) size: usize,
}

#[repr(C)]
pub(super) struct FiEpAttr {
    pub(super) kind: c_int,
    pub(super) protocol: u32,
    pub(super) protocol_version: u32,
    pub(super) max_msg_size: usize,
    pub(super) msg_prefix_size: usize,
}

#[repr(C)]
pub(super) struct FiDomainAttr {
    pub(super) domain: *mut Opaque,
    pub(super) name: *mut c_char,
    pub(super) threading: c_int,
    pub(super) control_progress: c_int,
    pub(super) data_progress: c_int,
    pub(super) resource_mgmt: c_int,
    pub(super) av_type: c_int,
    pub(super) mr_mode: c_int,
    pub(super) mr_key_size: usize,
}

#[repr(C)]
pub(super) struct FiFabricAttr {
    pub(super) fabric: *mut Opaque,
    pub(super) name: *mut c_char,
    pub(super) prov_name: *mut c_char,
    pub(super) prov_version: u32,
    pub(super) api_version: u32,
}

#[repr(C)]
pub(super) struct FiInfo {
    pub(super) next: *mut FiInfo,
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) addr_format: u32,
    pub(super) src_addrlen: usize,
    pub(super) dest_addrlen: usize,
    pub(super) src_addr: *mut c_void,
    pub(super) dest_addr: *mut c_void,
    pub(super) handle: *mut Fid,
    pub(super) tx_attr: *mut FiTxAttr,
    pub(super) rx_attr: *mut FiRxAttr,
    pub(super) ep_attr: *mut FiEpAttr,
    pub(super) domain_attr: *mut FiDomainAttr,
    pub(super) fabric_attr: *mut FiFabricAttr,
    pub(super) nic: *mut Opaque,
}

#[repr(C)]
pub(super) struct Fid {
    pub(super) fclass: usize,
    pub(super) context: *mut c_void,
    pub(super) ops: *mut FiOps,
}

#[repr(C)]
pub(super) struct FiOps {
    pub(super) size: usize,
    pub(super) close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub(super) bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub(super) control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
}

#[repr(C)]
pub(super) struct FidFabric {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsFabric,
}

#[repr(C)]
pub(super) struct FiOpsFabric {
    pub(super) size: usize,
    pub(super) domain:
        unsafe extern "C" fn(*mut FidFabric, *mut FiInfo, *mut *mut FidDomain, *mut c_void) -> c_int,
    passive_ep: *const Opaque,
    eq_open: *const Opaque,
    wait_open: *const Opaque,
    pub(super) trywait: unsafe extern "C" fn(*mut FidFabric, *mut *mut Fid, c_int) -> c_int,
}

#[repr(C)]
pub(super) struct FidDomain {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsDomain,
    pub(super) mr: *mut FiOpsMr,
}

#[repr(C)]
pub(super) struct FiOpsDomain {
    pub(super) size: usize,
    pub(super) av_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiAvAttr, *mut *mut FidAv, *mut c_void) -> c_int,
    pub(super) cq_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiCqAttr, *mut *mut FidCq, *mut c_void) -> c_int,
    pub(super) endpoint:
        unsafe extern "C" fn(*mut FidDomain, *mut FiInfo, *mut *mut FidEp, *mut c_void) -> c_int,
}

#[repr(C)]
pub(super) struct FiOpsMr {
    pub(super) size: usize,
    pub(super) reg: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut FidMr,
        *mut c_void,
    ) -> c_int,
}

#[repr(C)]
pub(super) struct FidMr {
    pub(super) fid: Fid,
    pub(super) mem_desc: *mut c_void,
    pub(super) key: u64,
}

#[repr(C)]
pub(super) struct FiAvAttr {
    pub(super) kind: c_int,
    pub(super) rx_ctx_bits: c_int,
    pub(super) count: usize,
    pub(super) ep_per_node: usize,
    pub(super) name: *const c_char,
    pub(super) map_addr: *mut c_void,
    pub(super) flags: u64,
}

#[repr(C)]
pub(super) struct FidAv {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsAv,
}

#[repr(C)]
pub(super) struct FiOpsAv {
    pub(super) size: usize,
    pub(super) insert:
        unsafe extern "C" fn(*mut FidAv, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int,
}

#[repr(C)]
pub(super) struct FiCqAttr {
    pub(super) size: usize,
    pub(super) flags: u64,
    pub(super) format: c_int,
    pub(super) wait_obj: c_int,
    pub(super) signaling_vector: c_int,
    pub(super) wait_cond: c_int,
    pub(super) wait_set: *mut Opaque,
}

#[repr(C)]
pub(super) struct FidCq {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsCq,
}

#[repr(C)]
pub(super) struct FiOpsCq {
    pub(super) size: usize,
    pub(super) read: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize) -> isize,
    readfrom: *const Opaque,
    pub(super) readerr: unsafe extern "C" fn(*mut FidCq, *mut FiCqErrEntry, u64) -> isize,
}

/// `struct fi_cq_msg_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FiCqMsgEntry {
    pub(super) op_context: *mut c_void,
    pub(super) flags: u64,
    pub(super) len: usize,
}

#[repr(C)]
pub(super) struct FiCqErrEntry {
    pub(super) op_context: *mut c_void,
    pub(super) flags: u64,
    pub(super) len: usize,
    pub(super) buf: *mut c_void,
    pub(super) data: u64,
    pub(super) tag: u64,
    pub(super) olen: usize,
    pub(super) err: c_int,
    pub(super) prov_errno: c_int,
    pub(super) err_data: *mut c_void,
    pub(super) err_data_size: usize,
    /// Room for fields of later versions.
    pub(super) more: [u64; 4],
}

#[repr(C)]
pub(super) struct FidEp {
    pub(super) fid: Fid,
    pub(super) ops: *mut Opaque,
    pub(super) cm: *mut FiOpsCm,
    pub(super) msg: *mut FiOpsMsg,
    pub(super) rma: *mut FiOpsRma,
}

#[repr(C)]
pub(super) struct FiOpsCm {
    pub(super) size: usize,
    setname: *const Opaque,
    pub(super) getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
}

#[repr(C)]
pub(super) struct FiOpsMsg {
    pub(super) size: usize,
    pub(super) recv:
        unsafe extern "C" fn(*mut FidEp, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    recvv: *const Opaque,
    recvmsg: *const Opaque,
    pub(super) send:
        unsafe extern "C" fn(*mut FidEp, *const c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    sendv: *const Opaque,
    sendmsg: *const Opaque,
    pub(super) inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64) -> isize,
}

#[repr(C)]
pub(super) struct FiOpsRma {
    pub(super) size: usize,
    pub(super) read: unsafe extern "C" fn(
        *mut FidEp,
        *mut c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
}

/// The functions that the library exports.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) version: unsafe extern "C" fn() -> u32,
    pub(super) getinfo: unsafe extern "C" fn(
        u32,
        *const c_char,
        *const c_char,
        u64,
        *const FiInfo,
        *mut *mut FiInfo,
    ) -> c_int,
    pub(super) freeinfo: unsafe extern "C" fn(*mut FiInfo),
    pub(super) dupinfo: unsafe extern "C" fn(*const FiInfo) -> *mut FiInfo,
    pub(super) fabric: unsafe extern "C" fn(*mut FiFabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int,
    pub(super) strerror: unsafe extern "C" fn(c_int) -> *const c_char,
}
