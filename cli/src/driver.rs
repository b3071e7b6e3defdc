//! `--driver`: by which drivers interfaces are used, for one command instead of in the settings.

use clap::Args;
use newmadeleine::{Network, Options, SessionError};

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DriverArgs {
    /// How interfaces are used: tcp, udp, packet, verbs, ofi:PROVIDER, or several; else as configured
    #[arg(long = "driver", value_name = "NAME,...", value_delimiter = ',', value_parser = Network::named)]
    drivers: Vec<Network>,
}

impl DriverArgs {
    /// Whether any are named.
    pub(crate) fn are_named(&self) -> bool {
        !self.drivers.is_empty()
    }

    /// The option as it is written.
    pub(crate) fn words(&self) -> Option<String> {
        let names: Vec<&str> = self.drivers.iter().map(|driver| driver.name()).collect();
        self.are_named().then(|| format!("--driver={}", names.join(",")))
    }

    /// The same settings with these drivers, if any are named.
    pub(crate) fn of(&self, options: Options) -> Result<Options, SessionError> {
        let wrong = |why| SessionError::Setting { setting: "--driver".into(), why };
        Network::all_different(&self.drivers).map_err(wrong)?;
        Ok(match self.are_named() {
            true => Options { drivers: self.drivers.clone(), ..options },
            false => options,
        })
    }
}
