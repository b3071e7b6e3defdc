//! How a type was made: envelope and contents (MPI 5.0, section 5.1.13).

use super::tree::{Combiner, Contents, Datatype, Form};
use crate::error::{Class, Result};

/// The meaning of one of the integers of [`Contents`], for callers that translate constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerKind {
    /// A number.
    Plain,
    /// An [`super::Order`].
    Order,
    /// A [`super::Distribution`].
    Distribution,
    /// An argument of a distribution, perhaps [`super::DEFAULT_ARGUMENT`].
    Argument,
}

impl Contents {
    /// Of a predefined type: nothing.
    pub(super) fn named() -> Contents {
        Contents::new(Form::Int, Combiner::Named, &[], &[], &[])
    }

    /// Of a call whose numbers are counts and then displacements in bytes: the large form has them in one
    /// list.
    pub(super) fn new(
        form: Form,
        combiner: Combiner,
        counts: &[&[i64]],
        addresses: &[i64],
        types: &[Datatype],
    ) -> Contents {
        let counts = counts.concat();
        let (integers, addresses, counts) = match form {
            Form::Int => (counts, addresses.to_vec(), Vec::new()),
            Form::Large => (Vec::new(), Vec::new(), [&counts, addresses].concat()),
        };
        Contents {
            combiner,
            form,
            integers: integers.into(),
            addresses: addresses.into(),
            counts: counts.into(),
            types: types.into(),
        }
    }

    /// What an element of [`Contents::integers`] is.
    pub fn integer_kind(&self, index: usize) -> IntegerKind {
        let last = index + 1 == self.integers.len();
        match self.combiner {
            Combiner::Subarray | Combiner::Darray if last => IntegerKind::Order,
            Combiner::Darray => {
                let dims = self.integers.get(2).map_or(0, |&dims| dims as usize);
                // size, rank, ndims, global sizes (elsewhere in the large form), distributions,
                // arguments, ...
                let distributions = 3 + if self.form == Form::Int { dims } else { 0 };
                match index {
                    _ if index < distributions => IntegerKind::Plain,
                    _ if index < distributions + dims => IntegerKind::Distribution,
                    _ if index < distributions + 2 * dims => IntegerKind::Argument,
                    _ => IntegerKind::Plain,
                }
            }
            _ => IntegerKind::Plain,
        }
    }

    /// Whether contents may be asked for at all, and in this form.
    ///
    /// # Errors
    /// Class TYPE: a predefined type has no contents; a type made by a `_c` call shows them to `_c` calls
    /// only.
    pub fn check(&self, form: Form) -> Result<()> {
        if self.combiner == Combiner::Named {
            return Err(Class::TYPE.error("a predefined datatype has no contents"));
        }
        self.check_form(form)
    }

    /// Whether the envelope may be asked for in this form.
    ///
    /// # Errors
    /// Class TYPE if the type was made by a `_c` call and the question is asked without `_c`.
    pub fn check_form(&self, form: Form) -> Result<()> {
        if self.form == Form::Large && form == Form::Int {
            let text = "the datatype was made with large counts: ask MPI_Type_get_envelope_c and \
                        MPI_Type_get_contents_c";
            return Err(Class::TYPE.error(text));
        }
        Ok(())
    }
}
