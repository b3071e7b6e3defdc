//! The few strokes a picture needs, in pixels from the upper left corner.
use std::fmt;

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontFamily, FontStyle, IntoFont, RGBColor, TextStyle};

use super::colour;

/// Why a picture could not be drawn. With finite coordinates it does not happen.
#[derive(Debug, thiserror::Error)]
#[error("drawing the picture failed: {0}")]
pub struct PlotError(String);

impl PlotError {
    fn of(cause: impl fmt::Display) -> PlotError {
        PlotError(cause.to_string())
    }
}

type Drawn = Result<(), PlotError>;

/// A point in pixels.
pub(super) type Pixel = (i32, i32);

/// Which part of the text stands at the given point; vertically it is always the middle.
#[derive(Clone, Copy)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

/// How text looks.
#[derive(Clone, Copy)]
pub(super) struct Lettering {
    /// Height in pixels.
    pub size: i32,
    pub colour: RGBColor,
    pub align: Align,
    pub bold: bool,
}

impl Lettering {
    pub const fn plain(size: i32, colour: RGBColor, align: Align) -> Lettering {
        Lettering { size, colour, align, bold: false }
    }

    pub const fn bold(size: i32, colour: RGBColor, align: Align) -> Lettering {
        Lettering { size, colour, align, bold: true }
    }
}

/// The width of `text` in pixels, on the safe side: the picture is made without a font, so it is a guess by
/// the usual proportions of a sans-serif one.
pub(super) fn text_width(text: &str, size: i32) -> i32 {
    let narrow =
        |c: char| matches!(c, 'i' | 'j' | 'l' | 't' | 'f' | 'r' | ' ' | '.' | ',' | ':' | '\'' | '(' | ')');
    let tenths: i32 = text.chars().map(|c| if narrow(c) { 4 } else { 7 }).sum();
    tenths * size / 10
}

/// A picture being drawn.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl Canvas<'_> {
    /// Draws a picture of `size` pixels with `draw` and returns it as SVG.
    pub fn picture(size: (u32, u32), draw: impl FnOnce(&Canvas<'_>) -> Drawn) -> Result<String, PlotError> {
        let mut svg = String::new();
        {
            let canvas = Canvas { area: SVGBackend::with_string(&mut svg, size).into_drawing_area() };
            canvas.area.fill(&colour::PAPER).map_err(PlotError::of)?;
            draw(&canvas)?;
            canvas.area.present().map_err(PlotError::of)?;
        }
        Ok(svg)
    }

    /// A line through all `points`.
    pub fn line(&self, points: impl Into<Vec<Pixel>>, colour: RGBColor, width: u32) -> Drawn {
        let line = PathElement::new(points.into(), colour.stroke_width(width));
        self.area.draw(&line).map_err(PlotError::of)
    }

    /// A dashed line through all `points`.
    pub fn dashed(&self, points: impl Into<Vec<Pixel>>, colour: RGBColor, width: u32) -> Drawn {
        let line = DashedPathElement::new(points.into(), 7, 5, colour.stroke_width(width));
        self.area.draw(&line).map_err(PlotError::of)
    }

    /// A thin dotted line through all `points`.
    pub fn dotted(&self, points: impl Into<Vec<Pixel>>, colour: RGBColor) -> Drawn {
        let line = DashedPathElement::new(points.into(), 1, 4, colour.stroke_width(1));
        self.area.draw(&line).map_err(PlotError::of)
    }

    /// A filled area that lets through what lies below it.
    pub fn veil(&self, points: Vec<Pixel>, colour: RGBColor) -> Drawn {
        self.area.draw(&Polygon::new(points, colour.mix(0.18).filled())).map_err(PlotError::of)
    }

    /// A filled rectangle.
    pub fn rect(&self, from: Pixel, to: Pixel, fill: RGBColor) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], fill.filled())).map_err(PlotError::of)
    }

    /// The outline of a rectangle.
    pub fn outline(&self, from: Pixel, to: Pixel, colour: RGBColor) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], colour.stroke_width(1))).map_err(PlotError::of)
    }

    /// A mark whose shape follows from `index`, so that curves can be distinguished without colour.
    pub fn mark(&self, (x, y): Pixel, index: usize, colour: RGBColor) -> Drawn {
        let fill = colour.filled();
        let polygon = |points: Vec<Pixel>| self.area.draw(&Polygon::new(points, fill)).map_err(PlotError::of);
        match index % 4 {
            0 => self.area.draw(&Circle::new((x, y), 4, fill)).map_err(PlotError::of),
            1 => self.rect((x - 4, y - 4), (x + 4, y + 4), colour),
            2 => polygon(vec![(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)]),
            _ => polygon(vec![(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)]),
        }
    }

    /// One line of text.
    pub fn text(&self, at: Pixel, lettering: Lettering, text: &str) -> Drawn {
        let weight = if lettering.bold { FontStyle::Bold } else { FontStyle::Normal };
        let h_pos = match lettering.align {
            Align::Left => HPos::Left,
            Align::Centre => HPos::Center,
            Align::Right => HPos::Right,
        };
        // The backend divides by this factor: its sizes are those of a line, ours those of the letters.
        let font = (FontFamily::SansSerif, f64::from(lettering.size) * 1.24, weight).into_font();
        let style = TextStyle::from(font).color(&lettering.colour).pos(Pos::new(h_pos, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), at, style)).map_err(PlotError::of)
    }
}
