//! How data look in a file: as in memory, as `external32`, or as functions of the program say.

use crate::api::type_handle;
use crate::datatype::{Basic, Datatype, EXTERNAL32};
use crate::error::{Class, Result};
use crate::handle::Type;
use crate::memory;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of a name, as `MPI_MAX_DATAREP_STRING` without the end.
const NAME_MAX: usize = 127;

/// Data that a function of the program converts, all of them from or to one buffer.
pub struct Converted {
    /// The program's buffer.
    pub memory: *mut c_void,
    /// The type of its elements.
    pub datatype: Type,
    /// Elements.
    pub count: i64,
    /// The data as they are in the file.
    pub file: *mut c_void,
    /// The first element of the program's buffer that is converted.
    pub position: i64,
}

/// Converts data.
pub type Convert = Box<dyn Fn(Converted) -> Result<()> + Send + Sync>;
/// Tells how many bytes an element of a predefined type has in the file.
pub type Extent = Box<dyn Fn(Type) -> Result<i64> + Send + Sync>;

/// A representation that a program has defined.
pub(crate) struct Datarep {
    name: String,
    read: Option<Convert>,
    write: Option<Convert>,
    extent: Extent,
}

/// Those that the program has defined; they stay as long as the process.
static DEFINED: Mutex<Vec<Arc<Datarep>>> = Mutex::new(Vec::new());

/// How data look.
#[derive(Clone)]
pub(crate) enum Representation {
    Native,
    /// As in memory, too: all processes of a job are of one kind.
    Internal,
    External32,
    Defined(Arc<Datarep>),
}

impl Representation {
    /// That of this name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn named(name: &str) -> Result<Representation> {
        match name {
            "native" => return Ok(Representation::Native),
            "internal" => return Ok(Representation::Internal),
            EXTERNAL32 => return Ok(Representation::External32),
            _ => {}
        }
        let defined = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        let found = defined.iter().find(|each| each.name == name).cloned();
        found.map(Representation::Defined).ok_or_else(|| {
            Class::UNSUPPORTED_DATAREP.error(format!(
                "there is no data representation '{name}': there are native, internal and external32, and \
                 those of MPI_Register_datarep"
            ))
        })
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Representation::Native => "native",
            Representation::Internal => "internal",
            Representation::External32 => EXTERNAL32,
            Representation::Defined(datarep) => &datarep.name,
        }
    }

    /// A type as it lies in the file.
    ///
    /// # Errors
    /// A function of the program fails, or the type cannot be translated.
    pub(super) fn in_file(&self, datatype: &Datatype) -> Result<Datatype> {
        match self {
            Representation::Native | Representation::Internal => Ok(datatype.clone()),
            Representation::External32 => datatype.in_file(&|basic| Ok(basic.external_size())),
            Representation::Defined(datarep) => datatype.in_file(&|basic| datarep.len_of(basic)),
        }
    }

    /// Whether data that are written look as in memory.
    pub(super) fn is_as_in_memory(&self, writes: bool) -> bool {
        match self {
            Representation::Native | Representation::Internal => true,
            Representation::External32 => false,
            Representation::Defined(datarep) if writes => datarep.write.is_none(),
            Representation::Defined(datarep) => datarep.read.is_none(),
        }
    }

    /// Converts elements of the program's for the file.
    ///
    /// # Errors
    /// A function of the program fails.
    pub(super) fn write(
        &self,
        memory: *const c_void,
        elements: (i64, &Datatype),
        file: &mut [u8],
    ) -> Result<()> {
        let memory = memory.cast_mut();
        match self {
            Representation::Native | Representation::Internal => Ok(()),
            Representation::External32 => {
                let room = (file.as_mut_ptr().cast(), file.len());
                memory::pack(memory::Representation::External32, memory, elements, room, &mut 0)
            }
            Representation::Defined(datarep) => {
                convert(datarep.write.as_ref(), memory, elements, file.as_mut_ptr().cast())
            }
        }
    }

    /// Converts elements of the file for the program.
    ///
    /// # Errors
    /// A function of the program fails.
    pub(super) fn read(
        &self,
        file: &mut [u8],
        memory: *mut c_void,
        elements: (i64, &Datatype),
    ) -> Result<()> {
        match self {
            Representation::Native | Representation::Internal => Ok(()),
            Representation::External32 => {
                let packed = (file.as_ptr().cast(), file.len());
                memory::unpack(memory::Representation::External32, packed, &mut 0, memory, elements)
            }
            Representation::Defined(datarep) => {
                convert(datarep.read.as_ref(), memory, elements, file.as_mut_ptr().cast())
            }
        }
    }
}

fn convert(
    with: Option<&Convert>,
    memory: *mut c_void,
    (count, datatype): (i64, &Datatype),
    file: *mut c_void,
) -> Result<()> {
    let Some(with) = with.filter(|_| count > 0) else { return Ok(()) };
    with(Converted { memory, datatype: type_handle(datatype), count, file, position: 0 })
}

impl Datarep {
    fn len_of(&self, basic: Basic) -> Result<i64> {
        let len = (self.extent)(Type(basic as u32))?;
        if len > 0 {
            return Ok(len);
        }
        Err(Class::CONVERSION.error(format!(
            "the data representation '{}' says that a {} has {len} B in the file",
            self.name,
            basic.name()
        )))
    }
}

/// Defines a representation.
///
/// # Errors
/// There is one of this name, or the name is too long.
pub(crate) fn define(
    name: &str,
    read: Option<Convert>,
    write: Option<Convert>,
    extent: Extent,
) -> Result<()> {
    if name.is_empty() || name.len() > NAME_MAX {
        let text =
            format!("the name of a data representation has {} B: it must have 1 to {NAME_MAX}", name.len());
        return Err(Class::ARG.error(text));
    }
    if Representation::named(name).is_ok() {
        return Err(Class::DUP_DATAREP.error(format!("there is a data representation '{name}' already")));
    }
    let datarep = Arc::new(Datarep { name: name.into(), read, write, extent });
    DEFINED.lock().unwrap_or_else(PoisonError::into_inner).push(datarep);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_once() {
        for name in ["native", "internal", "external32"] {
            let known = Representation::named(name).unwrap();
            assert_eq!(known.name(), name);
            let twice = define(name, None, None, Box::new(|_| Ok(1)));
            assert_eq!(twice.unwrap_err().class(), Class::DUP_DATAREP);
        }
        assert_eq!(Representation::named("mine").err().map(|e| e.class()), Some(Class::UNSUPPORTED_DATAREP));
        define("mine", None, None, Box::new(|_| Ok(1))).unwrap();
        assert!(Representation::named("mine").is_ok_and(|mine| mine.is_as_in_memory(true)));
        assert_eq!(define("", None, None, Box::new(|_| Ok(1))).unwrap_err().class(), Class::ARG);
    }
}
