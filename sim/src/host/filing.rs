//! The steps of an application that access files.

use super::{Host, Mode};
use crate::files::Files;
use crate::network::lock;
use crate::oracle::Objection;
use crate::oracle::delivery::DeliveryOracle;
use crate::workload::{Plan, Step};

impl Host {
    /// The host has files open.
    pub fn open(&mut self, files: Files) {
        self.files = Some(files);
    }

    /// Closes the files, when nobody accesses them any more.
    pub fn close_files(&self) {
        // A write that the server refuses now was refused before, or is one that nobody hears of any more.
        let _ = self.files.iter().try_for_each(Files::close);
    }

    /// Goes through a step; none: it is of another kind.
    pub(super) fn file_step(
        &mut self,
        step: &Step,
        plan: &Plan,
        oracle: &mut DeliveryOracle,
    ) -> Option<Mode> {
        match *step {
            Step::Meet(number) => {
                *self.met.entry(number).or_default() += 1;
                Some(Mode::Meeting(number))
            }
            Step::File(number) => {
                let (files, script) = (self.files.as_mut()?, plan.files.as_ref()?);
                let task = &script.tasks[number];
                files.begin(self.at, number, task);
                oracle.files.begin(script, number, files.refused(task.file));
                self.note(&[31, number as u64], || format!("task {number}: {}", task.what));
                Some(Mode::Filing)
            }
            _ => None,
        }
    }

    /// Whether all threads of the application have come to this step.
    pub(super) fn has_met(&self, number: usize) -> bool {
        self.met.get(&number).is_some_and(|count| *count == self.threads.len())
    }

    /// Whether the task of the thread has ended.
    pub(super) fn filed(&mut self, plan: &Plan, oracle: &mut DeliveryOracle) -> Result<bool, Objection> {
        let Host { files: Some(files), engine, at, .. } = self else { return Ok(true) };
        let ended = files.advance(*at, engine);
        let Some(script) = &plan.files else { return Ok(true) };
        let file = ended.as_ref().map(|(number, _)| script.tasks[*number].file);
        let known = file.map(|file| (files.refused(file), files.gone(file)));
        // A process that waits looks after its messages.
        self.release();
        let (Some((number, ended)), Some(known)) = (ended, known) else { return Ok(false) };
        self.note(&[32, number as u64, ended.as_ref().map_or(0, |data| data.len() as u64)], || {
            let how = ended.as_ref().map_or_else(Clone::clone, |data| format!("{} B", data.len()));
            format!("task {number} ends: {how}")
        });
        oracle.files.end(script, number, ended, known)?;
        let mut network = lock(&self.network);
        let call_ns = network.machine.call_ns;
        network.work(self.id, call_ns);
        Ok(true)
    }

    /// Does what others have asked of the owners on this host; true: there was something.
    pub(super) fn serve_files(&mut self) -> bool {
        let Host { files: Some(files), engine, .. } = self else { return false };
        if !files.serve(engine) {
            return false;
        }
        self.push_urgently();
        true
    }
}
