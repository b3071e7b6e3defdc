//! Finding a predefined type by what it shall hold (MPI 5.0, section 19.1.5, and 6.9.4 for pairs).

use super::tree::{Combiner, Contents, Form};
use super::{Basic, Datatype};
use crate::error::{Class, Result};

/// What a type shall hold; the numbers are those of the standard's binary interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum TypeClass {
    /// A Fortran INTEGER.
    Integer = 192,
    /// A Fortran REAL.
    Real = 193,
    /// A Fortran COMPLEX.
    Complex = 194,
}

impl TypeClass {
    /// The class of this number in the standard's binary interface.
    pub fn from_number(number: i32) -> Option<TypeClass> {
        let all = [TypeClass::Integer, TypeClass::Real, TypeClass::Complex];
        all.into_iter().find(|&class| class as i32 == number)
    }

    /// Its name in Fortran.
    fn name(self) -> &'static str {
        match self {
            TypeClass::Integer => "INTEGER",
            TypeClass::Real => "REAL",
            TypeClass::Complex => "COMPLEX",
        }
    }
}

/// `MPI_Type_match_size`: the predefined type of this class and of `size` bytes.
///
/// # Errors
/// Class ARG if there is none.
pub fn match_size(class: TypeClass, size: i64) -> Result<Basic> {
    let found = match (class, size) {
        (TypeClass::Integer, 1) => Basic::Integer1,
        (TypeClass::Integer, 2) => Basic::Integer2,
        (TypeClass::Integer, 4) => Basic::Integer4,
        (TypeClass::Integer, 8) => Basic::Integer8,
        (TypeClass::Integer, 16) => Basic::Integer16,
        (TypeClass::Real, 2) => Basic::Real2,
        (TypeClass::Real, 4) => Basic::Real4,
        (TypeClass::Real, 8) => Basic::Real8,
        (TypeClass::Real, 16) => Basic::Real16,
        (TypeClass::Complex, 4) => Basic::Complex4,
        (TypeClass::Complex, 8) => Basic::Complex8,
        (TypeClass::Complex, 16) => Basic::Complex16,
        (TypeClass::Complex, 32) => Basic::Complex32,
        _ => return Err(Class::ARG.error(format!("there is no {} of {size} bytes", class.name()))),
    };
    Ok(found)
}

/// Decimal digits and exponent range of the IEEE numbers, with their sizes.
const REALS: [(i32, i32, i64); 4] = [(3, 4, 2), (6, 37, 4), (15, 307, 8), (33, 4931, 16)];
/// Decimal range of the integers, with their sizes.
const INTEGERS: [(i32, i64); 5] = [(2, 1), (4, 2), (9, 4), (18, 8), (38, 16)];

/// `MPI_Type_create_f90_real` and `MPI_Type_create_f90_complex`: the smallest type with at least
/// `precision` decimal digits and a decimal exponent range of at least `range`; one of both may be left
/// open.
///
/// # Errors
/// Class ARG if both are left open, or there is no such type.
pub fn f90_float(class: TypeClass, precision: Option<i32>, range: Option<i32>) -> Result<Datatype> {
    if precision.is_none() && range.is_none() {
        return Err(Class::ARG.error("either precision or range must be given"));
    }
    let wide = |wanted: Option<i32>, has: i32| wanted.is_none_or(|wanted| wanted <= has);
    let found = REALS.iter().find(|(digits, exponent, _)| wide(precision, *digits) && wide(range, *exponent));
    let Some((_, _, size)) = found else {
        let digits = precision.map(|digits| format!("{digits} decimal digits"));
        let exponents = range.map(|range| format!("an exponent range of {range}"));
        let wanted: Vec<String> = digits.into_iter().chain(exponents).collect();
        let text = format!("no {} has {}", class.name(), wanted.join(" and "));
        return Err(Class::ARG.error(text));
    };
    let (combiner, size) = match class {
        TypeClass::Complex => (Combiner::F90Complex, 2 * size),
        _ => (Combiner::F90Real, *size),
    };
    let undefined = i64::from(crate::constant::UNDEFINED);
    let numbers = [precision, range].map(|number| number.map_or(undefined, i64::from));
    of_size(class, size, combiner, &numbers)
}

/// `MPI_Type_create_f90_integer`: the smallest type that holds all numbers of `range` decimal digits.
///
/// # Errors
/// Class ARG if there is no such type.
pub fn f90_integer(range: i32) -> Result<Datatype> {
    let Some((_, size)) = INTEGERS.iter().find(|(digits, _)| range <= *digits) else {
        return Err(Class::ARG.error(format!("no INTEGER has {range} decimal digits")));
    };
    of_size(TypeClass::Integer, *size, Combiner::F90Integer, &[i64::from(range)])
}

fn of_size(class: TypeClass, size: i64, combiner: Combiner, numbers: &[i64]) -> Result<Datatype> {
    let basic = Datatype::of(match_size(class, size)?);
    let contents = Contents::new(Form::Int, combiner, &[numbers], &[], &[]);
    let new = basic.same(basic.bounds(), contents)?;
    new.commit();
    Ok(new)
}

/// `MPI_Type_get_value_index`: the pair of this value and this index, if there is one.
pub fn value_index(value: Basic, index: Basic) -> Option<Basic> {
    match (value, index) {
        (Basic::Float, Basic::Int) => Some(Basic::FloatInt),
        (Basic::Double, Basic::Int) => Some(Basic::DoubleInt),
        (Basic::Long, Basic::Int) => Some(Basic::LongInt),
        (Basic::Int, Basic::Int) => Some(Basic::TwoInt),
        (Basic::Short, Basic::Int) => Some(Basic::ShortInt),
        (Basic::LongDouble, Basic::Int) => Some(Basic::LongDoubleInt),
        (Basic::Real, Basic::Real) => Some(Basic::TwoReal),
        (Basic::DoublePrecision, Basic::DoublePrecision) => Some(Basic::TwoDoublePrecision),
        (Basic::Integer, Basic::Integer) => Some(Basic::TwoInteger),
        _ => None,
    }
}

impl Datatype {
    /// The basic type that stands behind a type of `MPI_Type_create_f90_*`.
    pub fn f90_basic(&self) -> Option<Basic> {
        match self.combiner() {
            Combiner::F90Real | Combiner::F90Complex | Combiner::F90Integer => self.only_basic(),
            _ => None,
        }
    }
}
