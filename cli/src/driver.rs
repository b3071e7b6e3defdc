//! `--driver`: by which drivers interfaces are used, for one command instead of in the settings.

use clap::Args;
use newmadeleine::{Network, Options};

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DriverArgs {
    /// How interfaces are used: tcp, udp, packet, or several; otherwise as configured (see `nmad info`)
    #[arg(long = "driver", value_name = "NAME,...", value_delimiter = ',', value_parser = Network::named)]
    drivers: Vec<Network>,
}

impl DriverArgs {
    /// The same settings with these drivers, if any are named.
    pub(crate) fn of(&self, options: Options) -> Options {
        match self.drivers.is_empty() {
            true => options,
            false => Options { drivers: self.drivers.clone(), ..options },
        }
    }
}
