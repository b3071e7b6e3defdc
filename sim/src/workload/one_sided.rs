//! Accesses to the memory of other hosts, which do nothing for it. Chance of their own, so that everything
//! else is as it is without them.

use super::Step;
use super::access::{Access, Touch};
use super::act::Author;
use super::exposures::Exposures;
use std::collections::BTreeSet;

impl Author {
    /// Accesses among random pairs, at most as many as said.
    pub(super) fn one_sided(&mut self, most: u64) {
        let Some(mut exposures) = self.exposures.take() else { return };
        for _ in 0..exposures.rng.range(1, most) {
            let (host, target) = exposures.two_hosts();
            match exposures.rng.below(16) {
                0 => self.flush(&mut exposures, host, target),
                // A lock of a host that dies is never given back.
                1 if !self.may_sever && !self.has_reports => self.locked(&mut exposures, host, target),
                2 => {
                    let ns = exposures.rng.len(500_000);
                    self.step(host, Step::Compute(ns));
                }
                _ => self.access(&mut exposures, host, target),
            }
        }
        for (host, target) in exposures.owes.keys().copied().collect::<BTreeSet<_>>() {
            self.flush(&mut exposures, host, target);
        }
        self.plan.exposes = exposures.sizes();
        self.exposures = Some(exposures);
    }

    fn access(&mut self, exposures: &mut Exposures, host: usize, target: usize) {
        let touch = exposures.touch(self.plan.accesses.len(), (host, target));
        if let Some(touch) = touch {
            self.add_access(host, target, touch);
        }
    }

    fn add_access(&mut self, host: usize, target: usize, touch: Touch) {
        self.step(host, Step::Access(self.plan.accesses.len()));
        self.plan.accesses.push(Access { host, target, touch });
    }

    fn flush(&mut self, exposures: &mut Exposures, host: usize, target: usize) {
        self.step(host, Step::Flush(target));
        exposures.completed((host, target));
    }

    /// Some accesses with a lock: shared, or alone, when the counter is raised without an atomic.
    fn locked(&mut self, exposures: &mut Exposures, host: usize, target: usize) {
        let alone = exposures.rng.percent(60);
        self.step(host, Step::Lock { target, alone });
        for _ in 0..exposures.rng.below(4) {
            self.access(exposures, host, target);
        }
        if alone {
            self.add_access(host, target, Touch::Count);
            self.flush(exposures, host, target);
            self.add_access(host, target, Touch::Raise);
        }
        self.step(host, Step::Unlock { target, alone });
        exposures.completed((host, target));
    }
}
