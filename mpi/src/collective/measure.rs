//! Blocking collectives whose algorithm is chosen by trials.

use super::call::Call;
use super::settings::settings;
use super::trial::WITHIN;
use crate::algorithm::board::POST_MAX;
use crate::algorithm::choice::Problem;

impl Call {
    /// Lets measurements decide how a blocking call goes, or has it try an algorithm: `len` is as in
    /// [`Call::on_board`].
    pub(super) fn measure<P: Problem>(&self, problem: &impl Fn() -> P, len: Option<u64>) {
        let is_tried = |len: &u64| *len > POST_MAX as u64 && self.is_blocking() && self.size() > 1;
        let Some(len) = len.filter(is_tried) else { return };
        let settings = settings();
        let comm = self.on.comm;
        // Ranks of two jobs have not agreed on costs, and would try different algorithms.
        let is_alone = comm.remote().is_none() && comm.bridges().is_empty();
        if !settings.tries || settings.check || !settings.choices.is_free(P::FAMILY) || !is_alone {
            return;
        }
        let promising = || settings.context().promising(&problem(), self.team(), WITHIN);
        if let Some((pick, attempt)) = comm.desk().trials.next::<P>(len, promising) {
            self.pick.set(Some(pick));
            self.attempt.set(attempt);
        }
    }
}
