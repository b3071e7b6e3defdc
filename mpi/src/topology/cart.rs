//! Grids: Cartesian topologies (MPI 5.0, section 8.5). Ranks are in row-major order: the last coordinate
//! runs fastest.

use crate::constant::PROC_NULL;
use crate::error::{Class, Result};
use crate::shown;

/// A grid of processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cart {
    dims: Vec<i32>,
    periods: Vec<bool>,
}

/// The part of a grid that `MPI_Cart_sub` leaves a process in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The same for all processes of one part, and different between parts.
    pub color: i32,
    /// The rank in the part.
    pub rank: i32,
    /// The grid of the part.
    pub cart: Cart,
}

impl Cart {
    /// A grid of these dimensions; `periods` says which of them are rings. No dimensions: one process.
    ///
    /// # Errors
    /// Class DIMS for a dimension that is not positive, or more processes than 31 bits count; ARG for
    /// lists of different lengths.
    pub fn new(dims: &[i32], periods: &[bool]) -> Result<Cart> {
        if dims.len() != periods.len() {
            let text = format!("{} dimensions but {} periods", dims.len(), periods.len());
            return Err(Class::ARG.error(text));
        }
        if let Some(bad) = dims.iter().find(|&&dim| dim < 1) {
            return Err(Class::DIMS.error(format!("a dimension is {bad}: it must be positive")));
        }
        if dims.iter().try_fold(1_i32, |size, &dim| size.checked_mul(dim)).is_none() {
            return Err(Class::DIMS.error("the grid has more processes than an int counts"));
        }
        Ok(Cart { dims: dims.to_vec(), periods: periods.to_vec() })
    }

    /// Processes of the grid.
    pub fn size(&self) -> i32 {
        self.dims.iter().product()
    }

    /// Processes in each dimension.
    pub fn dims(&self) -> &[i32] {
        &self.dims
    }

    /// Which dimensions are rings.
    pub fn periods(&self) -> &[bool] {
        &self.periods
    }

    /// `MPI_Cart_coords`: the coordinates of a rank.
    ///
    /// # Errors
    /// Class RANK for a rank that is not in the grid.
    pub fn coords(&self, rank: i32) -> Result<Vec<i32>> {
        if !(0..self.size()).contains(&rank) {
            let text = format!("rank {} is not in a grid of {} processes", shown::rank(rank), self.size());
            return Err(Class::RANK.error(text));
        }
        let mut coords = vec![0; self.dims.len()];
        let mut left = rank;
        for (coord, dim) in coords.iter_mut().zip(&self.dims).rev() {
            *coord = left % dim;
            left /= dim;
        }
        Ok(coords)
    }

    /// `MPI_Cart_rank`: the rank at these coordinates; those of rings may be any number.
    ///
    /// # Errors
    /// Class ARG for a coordinate outside of a dimension that is no ring, or fewer coordinates than
    /// dimensions.
    pub fn rank(&self, coords: &[i32]) -> Result<i32> {
        if coords.len() < self.dims.len() {
            let text = format!("{} coordinates for {} dimensions", coords.len(), self.dims.len());
            return Err(Class::ARG.error(text));
        }
        let mut rank = 0;
        for (i, (&dim, &is_ring)) in self.dims.iter().zip(&self.periods).enumerate() {
            if !is_ring && !(0..dim).contains(&coords[i]) {
                let text = format!(
                    "coordinate {} of dimension {i}, which is no ring, is not one of 0 to {}",
                    coords[i],
                    dim - 1
                );
                return Err(Class::ARG.error(text));
            }
            rank = rank * dim + coords[i].rem_euclid(dim);
        }
        Ok(rank)
    }

    /// `MPI_Cart_shift`: from whom and to whom `rank` shifts by `displacement` along a dimension;
    /// PROC_NULL beyond a border.
    ///
    /// # Errors
    /// Class DIMS for a dimension that there is not, RANK for a rank that is not in the grid.
    pub fn shift(&self, rank: i32, direction: i32, displacement: i32) -> Result<(i32, i32)> {
        let Some(dimension) = usize::try_from(direction).ok().filter(|&d| d < self.dims.len()) else {
            let text = format!("direction {direction} of a grid of {} dimensions", self.dims.len());
            return Err(Class::DIMS.error(text));
        };
        let coords = self.coords(rank)?;
        let moved = |by: i64| self.moved(rank, coords[dimension], dimension, by);
        Ok((moved(-i64::from(displacement)), moved(i64::from(displacement))))
    }

    /// The rank `by` steps from `rank`, whose coordinate in the dimension is `at`.
    fn moved(&self, rank: i32, at: i32, dimension: usize, by: i64) -> i32 {
        let dim = i64::from(self.dims[dimension]);
        let mut to = i64::from(at) + by;
        if self.periods[dimension] {
            to = to.rem_euclid(dim);
        } else if !(0..dim).contains(&to) {
            return PROC_NULL;
        }
        let width: i32 = self.dims[dimension + 1..].iter().product();
        rank + (to as i32 - at) * width
    }

    /// `MPI_Cart_sub`: the part of the grid that `rank` is in when only some dimensions are kept.
    ///
    /// # Errors
    /// Class ARG for fewer answers than dimensions, RANK for a rank that is not in the grid.
    pub fn sub(&self, rank: i32, keep: &[bool]) -> Result<Part> {
        if keep.len() < self.dims.len() {
            let text = format!("{} choices for {} dimensions", keep.len(), self.dims.len());
            return Err(Class::ARG.error(text));
        }
        let coords = self.coords(rank)?;
        let mut part = Part { color: 0, rank: 0, cart: Cart { dims: Vec::new(), periods: Vec::new() } };
        for (i, (&dim, &is_ring)) in self.dims.iter().zip(&self.periods).enumerate() {
            let place = if keep[i] { &mut part.rank } else { &mut part.color };
            *place = *place * dim + coords[i];
            if keep[i] {
                part.cart.dims.push(dim);
                part.cart.periods.push(is_ring);
            }
        }
        Ok(part)
    }

    /// In each dimension the neighbour below and the one above: the order of neighbourhood collectives.
    pub(super) fn neighbours(&self, rank: i32) -> Vec<i32> {
        let dims = 0..self.dims.len() as i32;
        dims.filter_map(|direction| self.shift(rank, direction, 1).ok()).flat_map(|(a, b)| [a, b]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn coordinates_and_ranks_are_inverse(
            grid in proptest::collection::vec((1..5_i32, any::<bool>()), 0..5),
        ) {
            let (dims, periods): (Vec<_>, Vec<_>) = grid.into_iter().unzip();
            let cart = Cart::new(&dims, &periods).unwrap();
            for rank in 0..cart.size() {
                prop_assert_eq!(cart.rank(&cart.coords(rank).unwrap()).unwrap(), rank);
            }
            prop_assert!(cart.coords(cart.size()).is_err());
        }

        #[test]
        fn who_is_shifted_to_sees_who_shifted(direction in 0..3, by in -7..7, periods in any::<[bool; 3]>()) {
            let cart = Cart::new(&[2, 3, 4], &periods).unwrap();
            for rank in 0..24 {
                let (_, to) = cart.shift(rank, direction, by).unwrap();
                if to != PROC_NULL {
                    prop_assert_eq!(cart.shift(to, direction, by).unwrap().0, rank);
                }
            }
        }

        #[test]
        fn parts_share_a_colour_and_number_their_ranks(keep in any::<[bool; 3]>()) {
            let cart = Cart::new(&[2, 3, 4], &[true; 3]).unwrap();
            let parts: Vec<Part> = (0..24).map(|rank| cart.sub(rank, &keep).unwrap()).collect();
            let size = parts[0].cart.size();
            for color in 0..24 / size {
                let ranks: Vec<i32> = parts.iter().filter(|p| p.color == color).map(|p| p.rank).collect();
                prop_assert_eq!(ranks, (0..size).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_border_has_no_neighbours_and_rings_have() {
        let cart = Cart::new(&[2, 3], &[false, true]).unwrap();
        assert_eq!(cart.neighbours(0), [PROC_NULL, 3, 2, 1]);
        assert_eq!(cart.shift(0, 1, -7).unwrap(), (1, 2));
        assert_eq!(cart.shift(5, 0, 1).unwrap(), (2, PROC_NULL));
        assert_eq!(cart.rank(&[1, -1]).unwrap(), 5);
        assert_eq!(cart.rank(&[-1, 0]).unwrap_err().class(), Class::ARG);
        assert_eq!(cart.shift(0, 2, 1).unwrap_err().class(), Class::DIMS);
    }
}
