//! What a rank did when: computing between calls of MPI, and what each call is for, as figures 8 and 9 of P5
//! tell states apart.

use super::records::{Call, Records, function};

/// What a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum State {
    /// Outside MPI.
    Computing,
    /// A send that blocks.
    Sending,
    /// A call that begins something and returns.
    Beginning,
    /// A receive, probe or wait that blocks.
    Waiting,
    /// A test, which returns in any case.
    Testing,
    /// A collective.
    Synchronizing,
    /// One-sided communication.
    OneSided,
}

impl State {
    pub(crate) const ALL: [State; 7] = [
        State::Computing,
        State::Sending,
        State::Beginning,
        State::Waiting,
        State::Testing,
        State::Synchronizing,
        State::OneSided,
    ];

    /// By the name of a function of MPI.
    pub(crate) fn of(call: &str) -> State {
        let name = function(call);
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        match name {
            "Send" | "Ssend" | "Rsend" | "Bsend" => State::Sending,
            "Get" => State::OneSided,
            "Recv" | "Mrecv" | "Probe" | "Mprobe" | "Sendrecv" | "Sendrecv_replace" => State::Waiting,
            _ if name.ends_with("_init") => State::Beginning,
            _ if begins(&["Wait", "Win_wait"]) => State::Waiting,
            _ if begins(&["Test", "Iprobe", "Improbe", "Request_get_status", "Parrived"]) => State::Testing,
            _ if begins(&[
                "Win_",
                "Put",
                "Get_acc",
                "Accumulate",
                "Rput",
                "Rget",
                "Raccumulate",
                "Fetch",
                "Compare",
            ]) =>
            {
                State::OneSided
            }
            _ if begins(&[
                "I",
                "Start",
                "Cancel",
                "Request_free",
                "Grequest",
                "Pready",
                "Psend",
                "Precv",
            ]) =>
            {
                State::Beginning
            }
            _ => State::Synchronizing,
        }
    }

    /// In words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Computing => "computing",
            State::Sending => "sending",
            State::Beginning => "beginning",
            State::Waiting => "waiting",
            State::Testing => "testing",
            State::Synchronizing => "synchronizing",
            State::OneSided => "one-sided",
        }
    }

    /// Red, green and blue: those of P5's figures 8 and 9, which are those of Paraver.
    pub(crate) fn colour(self) -> [u8; 3] {
        match self {
            State::Computing => [0, 0, 255],
            State::Sending => [255, 0, 174],
            State::Beginning => [100, 100, 177],
            State::Waiting => [255, 0, 0],
            State::Testing => [0, 160, 0],
            State::Synchronizing => [255, 144, 26],
            State::OneSided => [172, 174, 41],
        }
    }
}

/// A state of a thread, from when to when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch<'a> {
    pub(crate) state: State,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// The call; none: it computed.
    pub(crate) call: Option<&'a Call>,
}

/// Returns the threads of a rank that called MPI, each with its states from the first call to the last, in
/// the order of time. A call within another call, for example of a callback, is a part of that one.
pub(crate) fn threads(rank: &Records) -> Vec<(u32, Vec<Stretch<'_>>)> {
    let mut numbers: Vec<u32> = rank.calls.iter().map(|call| call.thread).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let stretches = |thread: u32| {
        let mut list = Vec::new();
        let mut until = None;
        let mut calls: Vec<&Call> = rank.calls.iter().filter(|call| call.thread == thread).collect();
        // A record is written when its call ends, so that of an inner call precedes that of the outer one.
        calls.sort_by_key(|call| (call.at_ns, std::cmp::Reverse(call.until_ns)));
        for call in calls {
            if until.is_some_and(|until| call.until_ns <= until && call.at_ns < until) {
                continue;
            }
            if let Some(until) = until.filter(|until| *until < call.at_ns) {
                list.push(Stretch {
                    state: State::Computing,
                    start_ns: until,
                    end_ns: call.at_ns,
                    call: None,
                });
            }
            list.push(Stretch {
                state: State::of(&call.call),
                start_ns: call.at_ns,
                end_ns: call.until_ns,
                call: Some(call),
            });
            until = Some(call.until_ns);
        }
        (thread, list)
    };
    numbers.into_iter().map(stretches).collect()
}

/// Nanoseconds that the first thread of a rank spent in each state.
pub(crate) fn sums(rank: &Records) -> [u64; State::ALL.len()] {
    let mut sums = [0; State::ALL.len()];
    for stretch in threads(rank).into_iter().next().into_iter().flat_map(|(_, list)| list) {
        sums[stretch.state as usize] += stretch.end_ns.saturating_sub(stretch.start_ns);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_what_they_are_for() {
        for (call, state) in [
            ("MPI_Send", State::Sending),
            ("MPI_Send_c", State::Sending),
            ("MPI_Isend", State::Beginning),
            ("MPI_Irecv", State::Beginning),
            ("MPI_Recv", State::Waiting),
            ("MPI_Waitall", State::Waiting),
            ("MPI_Testsome", State::Testing),
            ("MPI_Allreduce", State::Synchronizing),
            ("MPI_Iallreduce", State::Beginning),
            ("MPI_Barrier", State::Synchronizing),
            ("MPI_Gather", State::Synchronizing),
            ("MPI_Get_accumulate", State::OneSided),
            ("MPI_Win_fence", State::OneSided),
        ] {
            assert_eq!(State::of(call), state, "{call}");
        }
    }

    #[test]
    fn between_calls_a_thread_computes() {
        let call = |at: u64, name: &str, until: u64, thread: u32| {
            format!(r#"{{"at_ns":{at},"call":"{name}","until_ns":{until},"thread":{thread}}}"#)
        };
        let text = [call(10, "MPI_Send", 15, 0), call(30, "MPI_Wait", 40, 0), call(12, "MPI_Recv", 90, 7)];
        let rank = Records::parse("t.0".into(), &text.join("\n")).unwrap();
        let threads = threads(&rank);
        let states: Vec<_> = threads[0].1.iter().map(|each| (each.state, each.end_ns)).collect();
        assert_eq!(states, [(State::Sending, 15), (State::Computing, 30), (State::Waiting, 40)]);
        assert_eq!((threads[1].0, sums(&rank)[State::Computing as usize]), (7, 15));
    }

    #[test]
    fn a_call_within_a_call_is_a_part_of_it() {
        let call = |at: u64, name: &str, until: u64| {
            format!(r#"{{"at_ns":{at},"call":"{name}","until_ns":{until},"thread":0}}"#)
        };
        let text = [call(1, "MPI_Send", 2), call(15, "MPI_Recv", 18), call(10, "MPI_Comm_dup", 20)];
        let rank = Records::parse("t.0".into(), &text.join("\n")).unwrap();
        let list = threads(&rank).remove(0).1;
        let times: Vec<_> = list.iter().map(|each| (each.start_ns, each.end_ns)).collect();
        assert_eq!(times, [(1, 2), (2, 10), (10, 20)]);
    }
}
