//! Driver for libfabric: every network for which it has a provider.
//!
//! libfabric is loaded at run time, so building needs none. Each provider of [`provider`] is a driver of
//! its own (`ofi:tcp`); the rail is that of [`crate::fabric`], and this module has its adapter.

#[allow(unsafe_code)]
mod adapter;
#[allow(unsafe_code)]
mod fabric;
mod provider;
mod sys;

use crate::error::DriverError;
use crate::fabric::rail::FabricRail;
use crate::network::{OverInterface, Place};
use adapter::OfiAdapter;

/// A rail over one of libfabric's providers.
pub(crate) type OfiRail = FabricRail<OfiAdapter>;

impl OverInterface for OfiRail {
    const NAME: &'static str = "ofi";

    fn open_over(driver: &'static str, place: Place) -> Result<Self, DriverError> {
        let failed = |what: String| DriverError {
            rail: format!("{driver}/{}", place.interface.name),
            what,
            cause: None,
        };
        let provider = provider::of(driver).ok_or_else(|| failed("no such provider".into()))?;
        let adapter = OfiAdapter::open(provider, place.interface.address).map_err(failed)?;
        FabricRail::open(driver, place, adapter)
    }

    fn hindrance(driver: &str) -> Option<String> {
        let provider = provider::of(driver)?;
        let info = fabric::library().and_then(|functions| fabric::info(functions, provider, None));
        info.err()
    }
}
