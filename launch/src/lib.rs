//! Who am I, who are you: bootstrap of NewMadeleine jobs.
