//! Colours that stay apart for colour-blind readers, on a light background, and never come twice in a
//! picture.
use plotters::style::RGBColor;

pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
pub(super) const BAND: RGBColor = RGBColor(244, 245, 247);
pub(super) const GRID: RGBColor = RGBColor(221, 224, 228);
pub(super) const INK: RGBColor = RGBColor(34, 38, 43);
pub(super) const FAINT_INK: RGBColor = RGBColor(98, 106, 115);

/// What others are compared with: grey, which no series has.
pub(super) const BASELINE: RGBColor = RGBColor(120, 125, 132);
/// The series that a picture is about: the vermilion of Okabe and Ito (2008), which no other series has.
pub(super) const MAIN: RGBColor = RGBColor(213, 94, 0);

/// The other colours: those of Okabe and Ito without yellow, which is too light for a thin line on white,
/// then those of Paul Tol's "muted" scheme that keep apart from them.
const PALETTE: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(136, 34, 85),
    RGBColor(86, 180, 233),
    RGBColor(153, 153, 51),
    RGBColor(51, 34, 136),
    RGBColor(70, 70, 70),
    RGBColor(221, 204, 119),
];

/// The colour of the series or message number `index`. No two indices below 100 share one.
pub(super) fn series(index: usize) -> RGBColor {
    PALETTE.get(index).copied().unwrap_or_else(|| turned(index - PALETTE.len()))
}

/// A hue for each `index`, the golden angle apart, so that neighbours differ most; three lightnesses in turn.
fn turned(index: usize) -> RGBColor {
    let hue = (index as f64 * 137.508).rem_euclid(360.0);
    let lightness = [0.42, 0.56, 0.32][index % 3];
    let chroma = (1.0 - f64::abs(2.0 * lightness - 1.0)) * 0.6;
    let channel = |shift: f64| {
        // Conversion of hue, saturation and lightness to one of red, green and blue.
        let place = (shift + hue / 30.0).rem_euclid(12.0);
        let slope = f64::min(place - 3.0, 9.0 - place).clamp(-1.0, 1.0);
        ((lightness - chroma / 2.0 * slope) * 255.0).round() as u8
    };
    RGBColor(channel(0.0), channel(8.0), channel(4.0))
}

/// Contrast of two colours as WCAG 2 defines it, from 1 to 21.
fn contrast(a: RGBColor, b: RGBColor) -> f64 {
    let linear = |value: u8| match f64::from(value) / 255.0 {
        low if low <= 0.03928 => low / 12.92,
        high => ((high + 0.055) / 1.055).powf(2.4),
    };
    let light = |RGBColor(r, g, b)| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Black or white, whichever stands out more on `ground`.
pub(super) fn text_on(ground: RGBColor) -> RGBColor {
    if contrast(INK, ground) >= contrast(PAPER, ground) { INK } else { PAPER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stand_out_from_what_they_are_on() {
        // The least for bold letters and for graphics.
        for ground in (0..100).map(series).chain([MAIN, BASELINE]) {
            let ratio = contrast(text_on(ground), ground);
            assert!(ratio >= 3.0, "{ground:?}: {ratio:.2}");
        }
        assert!(contrast(INK, PAPER) >= 7.0 && contrast(INK, BAND) >= 7.0);
        assert!(contrast(FAINT_INK, PAPER) >= 4.5);
    }

    #[test]
    fn no_colour_comes_twice() {
        let all: Vec<RGBColor> = (0..100).map(series).chain([MAIN, BASELINE, INK, GRID, PAPER]).collect();
        for (index, colour) in all.iter().enumerate() {
            assert!(!all[..index].contains(colour), "number {index} repeats {colour:?}");
        }
    }
}
