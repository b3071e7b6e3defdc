//! Drivers around a driver.
