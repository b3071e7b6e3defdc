//! The testbed of a place, prepared for fair turns.

use nmad_testbed::Testbed;
use std::process::Command;
use std::time::Duration;

use crate::job::output;
use crate::place::Place;

const LIMIT: Duration = Duration::from_secs(20);

/// Cubic for every socket that asks for nothing else. By route, since a host may not choose for all of its
/// sockets. Otherwise peers get what the machine has, and that may pace by timers (bbr), which costs them a
/// factor of five on such rails.
const CUBIC: &str = "ip -4 route show | while read -r net dev rail rest; do
  ip route change \"$net\" \"$dev\" \"$rail\" congctl cubic || exit 1; done";

/// Where jobs run: this machine, or host 0 of a testbed that ends with this value.
pub(crate) struct Ground {
    testbed: Option<Testbed>,
    /// A difference from the conditions that the report promises.
    pub(crate) remark: Option<String>,
}

impl Ground {
    /// Builds what `place` needs; the reason, if that is not possible.
    pub(crate) fn prepare(place: &Place) -> Result<Ground, String> {
        if !place.is_testbed() {
            return Ok(Ground { testbed: None, remark: None });
        }
        let testbed = Testbed::build(&place.spec()).map_err(|error| error.to_string())?;
        let failed = (0..place.hosts).find_map(|host| choose_cubic(&testbed, host).err());
        let remark = failed.map(|why| {
            format!("in the testbed, the peers use the machine's own congestion control, not cubic: {why}")
        });
        Ok(Ground { testbed: Some(testbed), remark })
    }

    /// Has the command start there.
    pub(crate) fn place(&self, command: &mut Command) -> Result<(), String> {
        match &self.testbed {
            Some(testbed) => testbed.place(0, command).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

fn choose_cubic(testbed: &Testbed, host: u32) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", CUBIC]);
    testbed.place(host, &mut shell).map_err(|error| error.to_string())?;
    output(&mut shell, LIMIT).map(drop)
}
