//! Driver for RDMA: InfiniBand and RoCE v2, by libibverbs.
//!
//! The library is loaded at run time, so building needs none. The rail is that of [`crate::fabric`]; this
//! module has its adapter, and maps an interface to a device.

#[allow(unsafe_code)]
mod adapter;
#[allow(unsafe_code)]
mod device;
mod port;
mod sys;

use crate::error::DriverError;
use crate::fabric::rail::FabricRail;
use crate::network::{OverInterface, Place};
use adapter::VerbsAdapter;

/// A rail over the RDMA device of an interface.
pub(crate) type VerbsRail = FabricRail<VerbsAdapter>;

impl OverInterface for VerbsRail {
    const NAME: &'static str = "verbs";

    fn open_over(driver: &'static str, place: Place) -> Result<Self, DriverError> {
        let failed = |what: String| DriverError {
            rail: format!("{driver}/{}", place.interface.name),
            what,
            cause: None,
        };
        let port = port::of(&place.interface).map_err(failed)?;
        let adapter = VerbsAdapter::open(port).map_err(failed)?;
        FabricRail::open(driver, place, adapter)
    }

    fn hindrance(_: &str) -> Option<String> {
        if !port::has_devices() {
            return Some("this machine has no RDMA device (`rdma link` lists them); tcp does without".into());
        }
        device::library().err()
    }

    fn lack(_: &str) -> Option<String> {
        let why = crate::fabric::unmapped::notice().err()?;
        Some(format!(
            "each large message registers its memory again, because unmapping is not reported: {why}"
        ))
    }
}
