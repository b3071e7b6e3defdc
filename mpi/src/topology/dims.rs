//! Choosing the dimensions of a grid (MPI 5.0, section 8.5.2).

use crate::error::{Class, Result};

/// `MPI_Dims_create`: fills in the dimensions that are zero so that the grid has `nodes` processes. They
/// are as close to each other as possible (the largest is as small as it can be, then the next one) and
/// do not increase.
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
    let divisors = divisors(left);
    let mut chosen = Vec::with_capacity(open);
    balance(left, open, left, &divisors, &mut chosen);
    for (dim, chosen) in dims.iter_mut().filter(|dim| **dim == 0).zip(chosen) {
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

/// Writes `left` as `open` factors that do not increase and are at most `limit`: the first one that is
/// found is the one whose largest factor is smallest. Returns whether there is one.
fn balance(left: i32, open: usize, limit: i32, divisors: &[i32], chosen: &mut Vec<i32>) -> bool {
    if open == 1 {
        let fits = left <= limit;
        if fits {
            chosen.push(left);
        }
        return fits;
    }
    let candidates = divisors.iter().filter(|&&d| left % d == 0 && power_reaches(d, open, left));
    for &factor in candidates.take_while(|&&d| d <= limit) {
        chosen.push(factor);
        if balance(left / factor, open - 1, factor, divisors, chosen) {
            return true;
        }
        chosen.pop();
    }
    false
}

/// Whether `factor` to the power of `exponent` is at least `number`: no smaller factor can be the largest
/// one.
fn power_reaches(factor: i32, exponent: usize, number: i32) -> bool {
    let mut product = 1_i64;
    for _ in 0..exponent {
        if product >= i64::from(number) {
            return true;
        }
        if factor == 1 {
            return false;
        }
        product *= i64::from(factor);
    }
    product >= i64::from(number)
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

    /// The smallest possible largest factor, by trying everything.
    fn smallest_maximum(nodes: i32, open: usize) -> i32 {
        if open == 1 {
            return nodes;
        }
        let factors = (1..=nodes).filter(|factor| nodes % factor == 0);
        factors.map(|factor| factor.max(smallest_maximum(nodes / factor, open - 1))).min().unwrap()
    }

    proptest! {
        #[test]
        fn no_other_grid_has_a_smaller_largest_dimension(nodes in 1..600, open in 1..5_usize) {
            let dims = created(nodes, &vec![0; open]).unwrap();
            prop_assert_eq!(dims.iter().product::<i32>(), nodes);
            prop_assert!(dims.is_sorted_by(|a, b| a >= b));
            prop_assert_eq!(dims[0], smallest_maximum(nodes, open));
        }
    }
}
