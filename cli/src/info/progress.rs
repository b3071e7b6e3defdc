//! What moves messages while the program computes: the setting, and what the helper of this process decided.

use newmadeleine::Session;
use newmadeleine::progress::{Doing, Helped, Progress, list_cores};
use nmad_bench::table::Table;
use serde::Serialize;

/// The setting and the cores; in a job also the helper.
#[derive(Debug, Serialize)]
pub(super) struct Progressing {
    setting: String,
    /// Cores of this process, as `0-3,7`.
    allowed: String,
    helper: Option<Helper>,
}

/// The thread of this process.
#[derive(Debug, Serialize)]
struct Helper {
    doing: &'static str,
    cores: String,
    gives_way: bool,
    is_suspended: bool,
    suspensions: u64,
    turns: u64,
    moved: u64,
    posted: u64,
    preempted: u64,
    shared: u64,
    given_us: f64,
    spent_us: f64,
    delayed_us: f64,
}

pub(super) fn of_machine(setting: &Progress) -> Progressing {
    let allowed = list_cores(&newmadeleine::progress::own_cores());
    Progressing { setting: setting.to_string(), allowed, helper: None }
}

pub(super) fn of_session(session: &Session) -> Progressing {
    let Helped { setting, allowed, cores, gives_way, doing, is_suspended, suspensions, turns, moved, .. } =
        session.helped();
    let Helped { posted, preempted, shared, given_ns, spent_ns, delayed_ns, .. } = session.helped();
    let doing = match doing {
        Doing::Rests => "rests",
        Doing::Ticks => "ticks",
        Doing::Watches => "watches",
        Doing::Polls => "polls",
        Doing::StandsBy => "stands by",
    };
    let [given_us, spent_us, delayed_us] = [given_ns, spent_ns, delayed_ns].map(|ns| ns as f64 / 1e3);
    let helper = Helper {
        doing,
        cores: list_cores(&cores),
        gives_way,
        is_suspended,
        suspensions,
        turns,
        moved,
        posted,
        preempted,
        shared,
        given_us,
        spent_us,
        delayed_us,
    };
    Progressing { setting: setting.to_string(), allowed: list_cores(&allowed), helper: Some(helper) }
}

pub(super) fn table(found: &Progressing) -> Table {
    let mut table = Table::new("progress while the program computes", &["what", "value"]).words([1]);
    table.row(["setting".into(), found.setting.clone()]);
    table.row(["cores of this process".into(), found.allowed.clone()]);
    let Some(helper) = &found.helper else { return table };
    let way = match helper {
        Helper { gives_way: true, .. } => "looks once in a millisecond: there are more ranks than cores",
        Helper { is_suspended: true, .. } => "looks once in a millisecond: it cost more than it gave",
        Helper { doing, .. } => doing,
    };
    table.row(["the helper now", way].map(String::from));
    table.row(["cores that it may use".into(), helper.cores.clone()]);
    table.row(["has posted for threads in calls".into(), format!("{} times", helper.posted)]);
    if helper.preempted > 0 {
        let times = format!("{} times", helper.preempted);
        table.row(["has preempted threads that compute".into(), times]);
    }
    let parts = "has done parts of others' large copies, ciphers and reductions";
    table.row([parts.into(), format!("{} times", helper.shared)]);
    let moved = format!(
        "{} of {} looks, {:.0} us of work; {:.0} us of a core, threads of the program waited {:.0} us",
        helper.moved, helper.turns, helper.given_us, helper.spent_us, helper.delayed_us
    );
    table.row(["has moved messages in".into(), moved]);
    table
}
