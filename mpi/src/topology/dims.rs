//! Choosing the dimensions of a grid (MPI 5.0, section 8.5.2).

use crate::error::{Class, Result};

/// `MPI_Dims_create`: fills in the dimensions that are zero so that the grid has `nodes` processes. They
/// are as close to each other as possible and do not increase: the difference between the largest and the
/// smallest is the least, of equal differences the largest is the smallest, and then the next one.
///
/// # Errors
/// Class DIMS for a negative dimension, or if the given ones do not divide the number of processes; ARG
/// for no processes.
pub fn dims_create(nodes: i32, dims: &mut [i32]) -> Result<()> {
    if nodes < 1 {
        return Err(Class::ARG.error(format!("a grid of {nodes} processes")));
    }
    if let Some(bad) = dims.iter().find(|&&dim| dim < 0) {
        return Err(Class::DIMS.error(format!("a dimension is {bad}: it must not be negative")));
    }
    let given = dims.iter().filter(|&&dim| dim > 0).try_fold(1_i32, |product, &dim| product.checked_mul(dim));
    let open = dims.iter().filter(|&&dim| dim == 0).count();
    let Some(left) = given.filter(|given| nodes % given == 0).map(|given| nodes / given) else {
        return Err(Class::DIMS.error(format!("the given dimensions do not divide {nodes} processes")));
    };
    if open == 0 {
        return if left == 1 {
            Ok(())
        } else {
            Err(Class::DIMS
                .error(format!("the given dimensions are a grid of {}, not {nodes}", nodes / left)))
        };
    }
    let mut search = Search { divisors: divisors(left), chosen: Vec::new(), best: Vec::new() };
    search.choose(left, open);
    for (dim, chosen) in dims.iter_mut().filter(|dim| **dim == 0).zip(search.best) {
        *dim = chosen;
    }
    Ok(())
}

/// All divisors, ascending.
fn divisors(number: i32) -> Vec<i32> {
    let mut low: Vec<i32> = Vec::new();
    let mut high = Vec::new();
    let mut divisor = 1;
    while divisor <= number / divisor {
        if number % divisor == 0 {
            low.push(divisor);
            if divisor != number / divisor {
                high.push(number / divisor);
            }
        }
        divisor += 1;
    }
    low.extend(high.into_iter().rev());
    low
}

/// Looks for the factors that are closest to each other.
struct Search {
    divisors: Vec<i32>,
    /// The factors chosen so far, which do not increase.
    chosen: Vec<i32>,
    /// The closest complete choice so far.
    best: Vec<i32>,
}

impl Search {
    /// Tries all ways to write `left` as `open` more factors that could be closer than the best choice.
    fn choose(&mut self, left: i32, open: usize) {
        let limit = self.chosen.last().copied().unwrap_or(left);
        if open == 1 {
            if left <= limit && self.is_closer(self.chosen.first().map_or(0, |largest| largest - left)) {
                self.best = [&self.chosen[..], &[left]].concat();
            }
            return;
        }
        for index in 0..self.divisors.len() {
            let factor = self.divisors[index];
            if factor > limit {
                break;
            }
            if left % factor != 0 || !reaches(factor, open, left) {
                continue;
            }
            // The smallest factor is at most the root of the rest, which falls as this factor grows.
            let largest = self.chosen.first().copied().unwrap_or(factor);
            let least = self.spread().map_or(1, |spread| largest - spread + 1);
            if least > 1 && !reaches_at_most(least, open - 1, left / factor) {
                break;
            }
            self.chosen.push(factor);
            self.choose(left / factor, open - 1);
            self.chosen.pop();
        }
    }

    /// The difference between the largest and the smallest factor of the best choice.
    fn spread(&self) -> Option<i32> {
        Some(self.best.first()? - self.best.last()?)
    }

    fn is_closer(&self, spread: i32) -> bool {
        self.spread().is_none_or(|best| spread < best)
    }
}

/// Whether `factor` to the power of `exponent` is at least `number`: no smaller factor can be the largest
/// one.
fn reaches(factor: i32, exponent: usize, number: i32) -> bool {
    factor > 1 && power(factor, exponent, number) >= i64::from(number) || number <= 1
}

/// Whether `factor`, which is above 1, to the power of `exponent` is at most `number`: no larger factor can
/// be the smallest one.
fn reaches_at_most(factor: i32, exponent: usize, number: i32) -> bool {
    power(factor, exponent, number) <= i64::from(number)
}

/// `factor`, which is above 1, to the power of `exponent`, or the first power above `enough`.
fn power(factor: i32, exponent: usize, enough: i32) -> i64 {
    let mut product = 1;
    for _ in 0..exponent {
        product *= i64::from(factor);
        if product > i64::from(enough) {
            break;
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn created(nodes: i32, dims: &[i32]) -> Result<Vec<i32>> {
        let mut dims = dims.to_vec();
        dims_create(nodes, &mut dims).map(|()| dims)
    }

    #[test]
    fn the_standards_examples() {
        assert_eq!(created(6, &[0, 0]).unwrap(), [3, 2]);
        assert_eq!(created(7, &[0, 0]).unwrap(), [7, 1]);
        assert_eq!(created(6, &[0, 3, 0]).unwrap(), [2, 3, 1]);
        assert_eq!(created(7, &[0, 3, 0]).unwrap_err().class(), Class::DIMS);
    }

    #[test]
    fn factors_are_balanced() {
        assert_eq!(created(16, &[0; 2]).unwrap(), [4, 4]);
        assert_eq!(created(36, &[0; 3]).unwrap(), [4, 3, 3]);
        assert_eq!(created(10800, &[0; 3]).unwrap(), [25, 24, 18]);
        assert_eq!(created(1 << 30, &[0; 5]).unwrap(), [64; 5]);
        assert_eq!(created(i32::MAX, &[0; 3]).unwrap(), [i32::MAX, 1, 1]);
        assert_eq!(created(1, &[]).unwrap(), []);
        assert_eq!(created(2, &[]).unwrap_err().class(), Class::DIMS);
        assert_eq!(created(4, &[0, -1]).unwrap_err().class(), Class::DIMS);
        assert_eq!(created(0, &[0]).unwrap_err().class(), Class::ARG);
    }

    #[test]
    fn the_difference_counts_before_the_largest_dimension() {
        assert_eq!(created(24624, &[0; 3]).unwrap(), [38, 27, 24]);
        assert_eq!(created(31050, &[0; 3]).unwrap(), [46, 27, 25]);
        assert_eq!(created(34425, &[0; 3]).unwrap(), [51, 27, 25]);
        assert_eq!(created(2 * 24624, &[0, 2, 0, 0]).unwrap(), [38, 2, 27, 24]);
    }

    #[test]
    fn numbers_with_many_divisors_are_no_burden() {
        // 1536 divisors, the most below 2^31, and nine different primes.
        for nodes in [2_095_133_040, 223_092_870] {
            for open in 2..12 {
                let dims = created(nodes, &vec![0; open]).unwrap();
                assert_eq!(dims.iter().map(|&dim| i64::from(dim)).product::<i64>(), i64::from(nodes));
            }
        }
    }

    /// The least difference of the largest and the smallest factor, by trying everything: the factors before
    /// are between `low` and `high`.
    fn least_difference(nodes: i32, open: usize, (low, high): (i32, i32)) -> i32 {
        if open == 0 {
            return if nodes == 1 { high - low } else { i32::MAX };
        }
        let factors = (1..=nodes).filter(|factor| nodes % factor == 0);
        let rest =
            |factor: i32| least_difference(nodes / factor, open - 1, (low.min(factor), high.max(factor)));
        factors.map(rest).min().unwrap()
    }

    proptest! {
        #[test]
        fn no_other_grid_has_closer_dimensions(nodes in 1..600, open in 1..5_usize) {
            let dims = created(nodes, &vec![0; open]).unwrap();
            prop_assert_eq!(dims.iter().product::<i32>(), nodes);
            prop_assert!(dims.is_sorted_by(|a, b| a >= b));
            prop_assert_eq!(dims[0] - dims[open - 1], least_difference(nodes, open, (i32::MAX, 0)));
        }
    }
}
