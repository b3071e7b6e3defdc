//! Declarations of libibverbs' header (`infiniband/verbs.h` of rdma-core 44), as far as they are used:
//! structures, constants and functions. Calls of the fast path are not exported functions, but entries of
//! the table in its context. The layouts are part of the library's binary interface since version 1.1.

use std::ffi::{c_char, c_int, c_void};

/// Objects whose content is not accessed.
type Opaque = c_void;

pub(super) const IBV_ACCESS_LOCAL_WRITE: c_int = 1;
pub(super) const IBV_ACCESS_REMOTE_WRITE: c_int = 1 << 1;
pub(super) const IBV_ACCESS_REMOTE_READ: c_int = 1 << 2;
pub(super) const IBV_ACCESS_REMOTE_ATOMIC: c_int = 1 << 3;
pub(super) const IBV_ACCESS_ON_DEMAND: c_int = 1 << 6;
pub(super) const IBV_ATOMIC_HCA: u32 = 1;
pub(super) const IBV_ATOMIC_GLOB: u32 = 2;
pub(super) const IBV_WC_SUCCESS: u32 = 0;
pub(super) const IBV_WC_WR_FLUSH_ERR: u32 = 5;
pub(super) const IBV_WC_REM_ACCESS_ERR: u32 = 10;
pub(super) const IBV_WC_RETRY_EXC_ERR: u32 = 12;
pub(super) const IBV_WR_RDMA_WRITE: u32 = 0;
pub(super) const IBV_WR_SEND: u32 = 2;
pub(super) const IBV_WR_RDMA_READ: u32 = 4;
pub(super) const IBV_WR_ATOMIC_CMP_AND_SWP: u32 = 5;
pub(super) const IBV_WR_ATOMIC_FETCH_AND_ADD: u32 = 6;
pub(super) const IBV_SEND_SIGNALED: u32 = 1 << 1;
pub(super) const IBV_SEND_INLINE: u32 = 1 << 3;
pub(super) const IBV_QPT_RC: u32 = 2;
pub(super) const IBV_QPS_INIT: u32 = 1;
pub(super) const IBV_QPS_RTR: u32 = 2;
pub(super) const IBV_QPS_RTS: u32 = 3;
pub(super) const IBV_PORT_ACTIVE: u32 = 4;
pub(super) const IBV_LINK_LAYER_ETHERNET: u8 = 2;

pub(super) const IBV_QP_STATE: c_int = 1;
pub(super) const IBV_QP_ACCESS_FLAGS: c_int = 1 << 3;
pub(super) const IBV_QP_PKEY_INDEX: c_int = 1 << 4;
pub(super) const IBV_QP_PORT: c_int = 1 << 5;
pub(super) const IBV_QP_AV: c_int = 1 << 7;
pub(super) const IBV_QP_PATH_MTU: c_int = 1 << 8;
pub(super) const IBV_QP_TIMEOUT: c_int = 1 << 9;
pub(super) const IBV_QP_RETRY_CNT: c_int = 1 << 10;
pub(super) const IBV_QP_RNR_RETRY: c_int = 1 << 11;
pub(super) const IBV_QP_RQ_PSN: c_int = 1 << 12;
pub(super) const IBV_QP_MAX_QP_RD_ATOMIC: c_int = 1 << 13;
pub(super) const IBV_QP_MIN_RNR_TIMER: c_int = 1 << 15;
pub(super) const IBV_QP_SQ_PSN: c_int = 1 << 16;
pub(super) const IBV_QP_MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
pub(super) const IBV_QP_DEST_QPN: c_int = 1 << 20;

/// Entries of `struct ibv_context_ops`, by position; the others are never called.
#[repr(C)]
pub(super) struct Ops {
    before_poll_cq: [*const Opaque; 11],
    pub(super) poll_cq: unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int,
    pub(super) req_notify_cq: unsafe extern "C" fn(*mut Cq, c_int) -> c_int,
    before_post_srq_recv: [*const Opaque; 7],
    pub(super) post_srq_recv: unsafe extern "C" fn(*mut Srq, *mut RecvWr, *mut *mut RecvWr) -> c_int,
    before_post_send: [*const Opaque; 4],
    pub(super) post_send: unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int,
}

/// `struct ibv_context`.
#[repr(C)]
pub(super) struct Context {
    device: *mut Opaque,
    pub(super) ops: Ops,
}

/// `struct ibv_pd`.
pub(super) type Pd = Opaque;

/// `struct ibv_mr`.
#[repr(C)]
pub(super) struct Mr {
    context: *mut Context,
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    handle: u32,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

/// `struct ibv_comp_channel`.
#[repr(C)]
pub(super) struct Channel {
    context: *mut Context,
    pub(super) fd: c_int,
}

/// `struct ibv_cq`.
#[repr(C)]
pub(super) struct Cq {
    pub(super) context: *mut Context,
}

/// `struct ibv_srq`.
#[repr(C)]
pub(super) struct Srq {
    pub(super) context: *mut Context,
}

/// `struct ibv_qp`.
#[repr(C)]
pub(super) struct Qp {
    pub(super) context: *mut Context,
    parts: [*mut Opaque; 5],
    handle: u32,
    pub(super) qp_num: u32,
}

/// `struct ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Sge {
    pub(super) addr: u64,
    pub(super) length: u32,
    pub(super) lkey: u32,
}

/// `struct ibv_send_wr`, with the used member of each union, and room for the longest one. For an atomic
/// operation the second union has other members: the remote address, the operand of add or compare (in the
/// place of `rkey`), the value to swap in (`rest[0]`), and the key (`rest[1]`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SendWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut SendWr,
    pub(super) sg_list: *mut Sge,
    pub(super) num_sge: c_int,
    pub(super) opcode: u32,
    pub(super) send_flags: u32,
    pub(super) imm_data: u32,
    pub(super) remote_addr: u64,
    pub(super) rkey: u64,
    pub(super) rest: [u64; 9],
}

/// `struct ibv_recv_wr`.
#[repr(C)]
pub(super) struct RecvWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut RecvWr,
    pub(super) sg_list: *mut Sge,
    pub(super) num_sge: c_int,
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Wc {
    pub(super) wr_id: u64,
    pub(super) status: u32,
    pub(super) opcode: u32,
    pub(super) vendor_err: u32,
    pub(super) byte_len: u32,
    pub(super) imm_data: u32,
    pub(super) qp_num: u32,
    pub(super) src_qp: u32,
    pub(super) wc_flags: u32,
    pub(super) pkey_index: u16,
    pub(super) slid: u16,
    pub(super) sl: u8,
    pub(super) dlid_path_bits: u8,
}

/// `struct ibv_qp_cap`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct QpCap {
    pub(super) max_send_wr: u32,
    pub(super) max_recv_wr: u32,
    pub(super) max_send_sge: u32,
    pub(super) max_recv_sge: u32,
    pub(super) max_inline_data: u32,
}

/// `struct ibv_qp_init_attr`.
#[repr(C)]
pub(super) struct QpInitAttr {
    pub(super) qp_context: *mut c_void,
    pub(super) send_cq: *mut Cq,
    pub(super) recv_cq: *mut Cq,
    pub(super) srq: *mut Srq,
    pub(super) cap: QpCap,
    pub(super) qp_type: u32,
    pub(super) sq_sig_all: c_int,
}

/// `struct ibv_srq_init_attr`.
#[repr(C)]
pub(super) struct SrqInitAttr {
    pub(super) srq_context: *mut c_void,
    pub(super) max_wr: u32,
    pub(super) max_sge: u32,
    pub(super) srq_limit: u32,
}

/// `struct ibv_ah_attr`. The identifier is in network byte order.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct AhAttr {
    pub(super) dgid: [u64; 2],
    pub(super) flow_label: u32,
    pub(super) sgid_index: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
    pub(super) dlid: u16,
    pub(super) sl: u8,
    pub(super) src_path_bits: u8,
    pub(super) static_rate: u8,
    pub(super) is_global: u8,
    pub(super) port_num: u8,
}

/// `struct ibv_qp_attr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct QpAttr {
    pub(super) qp_state: u32,
    pub(super) cur_qp_state: u32,
    pub(super) path_mtu: u32,
    pub(super) path_mig_state: u32,
    pub(super) qkey: u32,
    pub(super) rq_psn: u32,
    pub(super) sq_psn: u32,
    pub(super) dest_qp_num: u32,
    pub(super) qp_access_flags: u32,
    pub(super) cap: QpCap,
    pub(super) ah_attr: AhAttr,
    pub(super) alt_ah_attr: AhAttr,
    pub(super) pkey_index: u16,
    pub(super) alt_pkey_index: u16,
    pub(super) en_sqd_async_notify: u8,
    pub(super) sq_draining: u8,
    pub(super) max_rd_atomic: u8,
    pub(super) max_dest_rd_atomic: u8,
    pub(super) min_rnr_timer: u8,
    pub(super) port_num: u8,
    pub(super) timeout: u8,
    pub(super) retry_cnt: u8,
    pub(super) rnr_retry: u8,
    pub(super) alt_port_num: u8,
    pub(super) alt_timeout: u8,
    pub(super) rate_limit: u32,
}

/// `struct ibv_device_attr`, of which one member is used; it is larger here than in the header.
#[repr(C)]
pub(super) struct DeviceAttr {
    before_atomic_cap: [u32; 41],
    pub(super) atomic_cap: u32,
    rest: [u64; 32],
}

impl Default for DeviceAttr {
    fn default() -> Self {
        DeviceAttr { before_atomic_cap: [0; 41], atomic_cap: 0, rest: [0; 32] }
    }
}

/// `struct ibv_port_attr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct PortAttr {
    pub(super) state: u32,
    pub(super) max_mtu: u32,
    pub(super) active_mtu: u32,
    pub(super) gid_tbl_len: c_int,
    pub(super) port_cap_flags: u32,
    pub(super) max_msg_sz: u32,
    pub(super) bad_pkey_cntr: u32,
    pub(super) qkey_viol_cntr: u32,
    pub(super) pkey_tbl_len: u16,
    pub(super) lid: u16,
    pub(super) sm_lid: u16,
    pub(super) lmc: u8,
    pub(super) max_vl_num: u8,
    pub(super) sm_sl: u8,
    pub(super) subnet_timeout: u8,
    pub(super) init_type_reply: u8,
    pub(super) active_width: u8,
    pub(super) active_speed: u8,
    pub(super) phys_state: u8,
    pub(super) link_layer: u8,
    pub(super) flags: u8,
    pub(super) port_cap_flags2: u16,
}

/// The functions that the library exports.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut Opaque,
    pub(super) free_device_list: unsafe extern "C" fn(*mut *mut Opaque),
    pub(super) get_device_name: unsafe extern "C" fn(*mut Opaque) -> *const c_char,
    pub(super) open_device: unsafe extern "C" fn(*mut Opaque) -> *mut Context,
    pub(super) close_device: unsafe extern "C" fn(*mut Context) -> c_int,
    pub(super) query_device: unsafe extern "C" fn(*mut Context, *mut DeviceAttr) -> c_int,
    pub(super) query_port: unsafe extern "C" fn(*mut Context, u8, *mut PortAttr) -> c_int,
    pub(super) query_gid: unsafe extern "C" fn(*mut Context, u8, c_int, *mut [u64; 2]) -> c_int,
    pub(super) alloc_pd: unsafe extern "C" fn(*mut Context) -> *mut Pd,
    pub(super) dealloc_pd: unsafe extern "C" fn(*mut Pd) -> c_int,
    pub(super) reg_mr: unsafe extern "C" fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr,
    pub(super) dereg_mr: unsafe extern "C" fn(*mut Mr) -> c_int,
    pub(super) create_comp_channel: unsafe extern "C" fn(*mut Context) -> *mut Channel,
    pub(super) destroy_comp_channel: unsafe extern "C" fn(*mut Channel) -> c_int,
    pub(super) create_cq:
        unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut Channel, c_int) -> *mut Cq,
    pub(super) destroy_cq: unsafe extern "C" fn(*mut Cq) -> c_int,
    pub(super) get_cq_event: unsafe extern "C" fn(*mut Channel, *mut *mut Cq, *mut *mut c_void) -> c_int,
    pub(super) ack_cq_events: unsafe extern "C" fn(*mut Cq, u32),
    pub(super) create_srq: unsafe extern "C" fn(*mut Pd, *mut SrqInitAttr) -> *mut Srq,
    pub(super) destroy_srq: unsafe extern "C" fn(*mut Srq) -> c_int,
    pub(super) create_qp: unsafe extern "C" fn(*mut Pd, *mut QpInitAttr) -> *mut Qp,
    pub(super) modify_qp: unsafe extern "C" fn(*mut Qp, *mut QpAttr, c_int) -> c_int,
    pub(super) destroy_qp: unsafe extern "C" fn(*mut Qp) -> c_int,
}

// The sizes on 64-bit machines.
const _: () = assert!(size_of::<SendWr>() == 128 && size_of::<Wc>() == 48 && size_of::<QpAttr>() == 144);
const _: () =
    assert!(size_of::<AhAttr>() == 32 && size_of::<PortAttr>() == 52 && size_of::<QpInitAttr>() == 64);
const _: () =
    assert!(std::mem::offset_of!(Ops, post_send) == 200 && std::mem::offset_of!(Ops, poll_cq) == 88);
const _: () = assert!(std::mem::offset_of!(Ops, post_srq_recv) == 160);
const _: () = assert!(std::mem::offset_of!(DeviceAttr, atomic_cap) == 164);
const _: () = assert!(std::mem::offset_of!(Qp, qp_num) == 52 && std::mem::offset_of!(Mr, lkey) == 36);
const _: () = assert!(std::mem::offset_of!(QpAttr, pkey_index) == 120);
