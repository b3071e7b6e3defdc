//! Colours that stay apart for colour-blind readers, on a light background.
use plotters::style::RGBColor;

pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
pub(super) const BAND: RGBColor = RGBColor(244, 245, 247);
pub(super) const GRID: RGBColor = RGBColor(221, 224, 228);
pub(super) const INK: RGBColor = RGBColor(34, 38, 43);
pub(super) const FAINT_INK: RGBColor = RGBColor(98, 106, 115);

/// The palette of Okabe and Ito (2008) without its yellow, which is too light for a thin line on white.
const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(70, 70, 70),
];

/// The colour of the series or message number `index`; beyond the palette they repeat.
pub(super) fn series(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// Black or white, whichever reads better on `ground` (weights of ITU-R BT.601).
pub(super) fn text_on(ground: RGBColor) -> RGBColor {
    let light = 299 * u32::from(ground.0) + 587 * u32::from(ground.1) + 114 * u32::from(ground.2);
    if light > 125_000 { INK } else { PAPER }
}
