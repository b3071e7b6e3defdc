//! Types as the standard defines them: a list of basic types with their displacements.

use proptest::prelude::*;

use crate::datatype::{Basic, Datatype, Form};

/// A type map, and the bounds that were given explicitly.
#[derive(Debug, Clone)]
pub(super) struct Map {
    pub entries: Vec<(Basic, i64)>,
    pub given: Option<(i64, i64)>,
    /// The bounds with the padding of basic types and structures.
    natural: Option<(i64, i64)>,
}

fn cover(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

impl Map {
    fn basic(basic: Basic) -> Map {
        Map { entries: vec![(basic, 0)], given: None, natural: Some((0, basic.extent())) }
    }

    const EMPTY: Map = Map { entries: Vec::new(), given: None, natural: None };

    /// MPI 5.0, section 5.1.6 and 5.1.7, but only structures are padded.
    pub fn bounds(&self) -> (i64, i64) {
        self.given.or(self.natural).unwrap_or((0, 0))
    }

    fn padded(mut self) -> Map {
        let alignment = self.entries.iter().map(|(basic, _)| basic.alignment()).max().unwrap_or(1);
        if let Some((begin, end)) = &mut self.natural {
            while (*end - *begin) % alignment != 0 {
                *end += 1;
            }
        }
        self
    }

    /// The true bounds.
    pub fn data(&self) -> (i64, i64) {
        let begin = self.entries.iter().map(|&(_, at)| at).min();
        let end = self.entries.iter().map(|(basic, at)| at + basic.span()).max();
        (begin.unwrap_or(0), end.unwrap_or(0))
    }

    pub fn extent(&self) -> i64 {
        let (begin, end) = self.bounds();
        end - begin
    }

    fn append(&mut self, other: &Map, by: i64) {
        self.entries.extend(other.entries.iter().map(|(basic, at)| (*basic, at + by)));
        let moved = |bounds: Option<(i64, i64)>| bounds.map(|(begin, end)| (begin + by, end + by));
        self.given = cover(self.given, moved(other.given));
        self.natural = cover(self.natural, moved(other.natural));
    }

    /// `count` elements at `by`, an extent apart.
    fn append_block(&mut self, other: &Map, by: i64, count: i64) {
        (0..count).for_each(|i| self.append(other, by + i * other.extent()));
    }

    /// Displacements of all bytes of `count` elements, in order.
    pub fn bytes(&self, count: i64) -> Vec<i64> {
        let mut whole = Map::EMPTY;
        whole.append_block(self, 0, count);
        whole.entries.iter().flat_map(|&(basic, at)| bytes_of(basic, at)).collect()
    }
}

/// The bytes of one basic element: pairs have a hole.
fn bytes_of(basic: Basic, at: i64) -> Vec<i64> {
    let value = basic.size() - basic.index().map_or(0, |index| index.size());
    let index = basic.index_offset().map_or(0..0, |offset| offset..basic.span());
    (0..value).chain(index).map(|byte| at + byte).collect()
}

/// How a type is made.
#[derive(Debug, Clone)]
pub(super) enum Recipe {
    Basic(Basic),
    Contiguous(i64, Box<Recipe>),
    Vector { count: i64, block: i64, stride: i64, bytes: bool, of: Box<Recipe> },
    Indexed { blocks: Vec<(i64, i64)>, bytes: bool, of: Box<Recipe> },
    Block { block: i64, places: Vec<i64>, bytes: bool, of: Box<Recipe> },
    Struct(Vec<(i64, i64, Recipe)>),
    Resized(i64, i64, Box<Recipe>),
    Dup(Box<Recipe>),
}

/// Random types, a few steps deep. Displacements may be negative, blocks may overlap or be empty.
pub(super) fn recipes() -> impl Strategy<Value = Recipe> {
    let basics =
        vec![Basic::Char, Basic::Short, Basic::Int, Basic::Double, Basic::DoubleInt, Basic::ShortInt];
    let leaf = proptest::sample::select(basics).prop_map(Recipe::Basic);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let pairs = proptest::collection::vec((0..4_i64, -20..60_i64), 0..4);
        prop_oneof![
            (0..5_i64, boxed.clone()).prop_map(|(n, of)| Recipe::Contiguous(n, of)),
            (0..4_i64, 0..4_i64, -8..9_i64, any::<bool>(), boxed.clone()).prop_map(
                |(count, block, stride, bytes, of)| Recipe::Vector { count, block, stride, bytes, of }
            ),
            (pairs, any::<bool>(), boxed.clone()).prop_map(|(blocks, bytes, of)| Recipe::Indexed {
                blocks,
                bytes,
                of
            }),
            (0..4_i64, proptest::collection::vec(-20..60_i64, 0..4), any::<bool>(), boxed.clone())
                .prop_map(|(block, places, bytes, of)| Recipe::Block { block, places, bytes, of }),
            proptest::collection::vec((0..3_i64, -30..90_i64, inner), 0..4).prop_map(Recipe::Struct),
            (-16..17_i64, -40..80_i64, boxed.clone())
                .prop_map(|(begin, extent, of)| Recipe::Resized(begin, extent, of)),
            boxed.prop_map(Recipe::Dup),
        ]
    })
}

impl Recipe {
    /// By the definition.
    pub fn map(&self) -> Map {
        let mut map = Map::EMPTY;
        match self {
            Recipe::Basic(basic) => return Map::basic(*basic),
            Recipe::Dup(of) => return of.map(),
            Recipe::Resized(begin, extent, of) => {
                return Map { given: Some((*begin, begin + extent)), ..of.map() };
            }
            Recipe::Contiguous(count, of) => map.append_block(&of.map(), 0, *count),
            Recipe::Vector { count, block, stride, bytes, of } => {
                let of = of.map();
                let unit = if *bytes { 1 } else { of.extent() };
                (0..*count).for_each(|i| map.append_block(&of, i * stride * unit, *block));
            }
            Recipe::Indexed { blocks, bytes, of } => {
                let of = of.map();
                let unit = if *bytes { 1 } else { of.extent() };
                blocks.iter().for_each(|(count, at)| map.append_block(&of, at * unit, *count));
            }
            Recipe::Block { block, places, bytes, of } => {
                let of = of.map();
                let unit = if *bytes { 1 } else { of.extent() };
                places.iter().for_each(|at| map.append_block(&of, at * unit, *block));
            }
            Recipe::Struct(fields) => {
                fields.iter().for_each(|(count, at, of)| map.append_block(&of.map(), *at, *count));
                return map.padded();
            }
        }
        map
    }

    /// By the constructors.
    pub fn build(&self) -> Datatype {
        let built = match self {
            Recipe::Basic(basic) => Ok(Datatype::of(*basic)),
            Recipe::Dup(of) => of.build().dup(),
            Recipe::Resized(begin, extent, of) => Datatype::resized(Form::Int, *begin, *extent, &of.build()),
            Recipe::Contiguous(count, of) => Datatype::contiguous(Form::Int, *count, &of.build()),
            Recipe::Vector { count, block, stride, bytes: false, of } => {
                Datatype::vector(Form::Int, *count, *block, *stride, &of.build())
            }
            Recipe::Vector { count, block, stride, of, .. } => {
                Datatype::hvector(Form::Large, *count, *block, *stride, &of.build())
            }
            Recipe::Indexed { blocks, bytes, of } => {
                let (lengths, places): (Vec<i64>, Vec<i64>) = blocks.iter().copied().unzip();
                let make = if *bytes { Datatype::hindexed } else { Datatype::indexed };
                make(Form::Int, &lengths, &places, &of.build())
            }
            Recipe::Block { block, places, bytes, of } => {
                let make = if *bytes { Datatype::hindexed_block } else { Datatype::indexed_block };
                make(Form::Large, *block, places, &of.build())
            }
            Recipe::Struct(fields) => {
                let lengths: Vec<i64> = fields.iter().map(|field| field.0).collect();
                let places: Vec<i64> = fields.iter().map(|field| field.1).collect();
                let types: Vec<Datatype> = fields.iter().map(|field| field.2.build()).collect();
                Datatype::structure_of(Form::Int, &lengths, &places, &types)
            }
        };
        built.expect("the numbers are small")
    }
}
