//! The setting `NMAD_PREEMPT`.

/// When a core that computes is preempted, to post a part of a message in parallel (P3 section III-D).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preempt {
    /// Never.
    Off,
    /// If the message arrives earlier by more than the time that the computing thread loses.
    #[default]
    Auto,
    /// If the message arrives earlier, as the paper has it.
    Always,
}

impl Preempt {
    /// Returns the name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Preempt::Off => "off",
            Preempt::Auto => "auto",
            Preempt::Always => "always",
        }
    }

    /// Parses the name in settings.
    pub fn named(name: &str) -> Option<Preempt> {
        [Preempt::Off, Preempt::Auto, Preempt::Always].into_iter().find(|one| one.name() == name)
    }
}
