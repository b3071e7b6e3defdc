//! Pictures as SVG: curves over the message size, times by case, and what each rail carried when.
//!
//! [`bandwidth_svg`] and [`latency_svg`] draw one curve per [`Series`], labelled at its end, with quartiles
//! as a band; [`dots_svg`] draws times of several libraries; [`distribution_svg`] how often a time is at
//! most so long; [`heat_svg`] a figure for each row and column; [`timeline_svg`] draws figure 3 of P4,
//! strategies one above the other on a common time axis. The pictures need no font to be made (text stays
//! text), use colours that a colour-blind reader can tell apart, and a light background. Whatever is given,
//! nothing panics: values that cannot be drawn are left out, and a picture of nothing says "no data".
mod axis;
mod canvas;
mod colour;
mod curve;
mod distribution;
mod dots;
mod heat;
mod timeline;

pub use canvas::PlotError;
pub use curve::{
    Mark, Point, Role, Series, bandwidth_svg, bandwidth_svg_with, latency_svg, latency_svg_with, ratio_svg,
};
pub use distribution::{Distribution, distribution_svg};
pub use dots::{Dot, DotGroup, dots_svg};
pub use heat::{HeatMap, heat_svg};
pub use timeline::{LaneGroup, RailLane, Span, timeline_svg};

#[cfg(test)]
mod tests;
