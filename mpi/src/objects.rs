//! Types, operators and groups by handle.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::attribute::Attributes;
use crate::datatype::{Basic, Datatype};
use crate::error::{Class, Error, Result};
use crate::group::Group as Members;
use crate::handle::{DYNAMIC, Group, Op, Type};
use crate::op::{Op as Operator, Predefined};
use crate::table::Table;

/// A type and what a program attached to it.
pub(crate) struct TypeObject {
    datatype: Datatype,
    /// How often the handle was given out and not freed.
    holders: AtomicU32,
    name: Mutex<Option<String>>,
    attributes: Attributes,
}

/// Types: those that programs made, and of the predefined ones those that were asked for more than their
/// data.
static TYPES: Table<TypeObject> = Table::new(DYNAMIC);
/// Operators that programs made.
static OPS: Table<Operator> = Table::new(DYNAMIC);
/// Groups that programs made.
static GROUPS: Table<Members> = Table::new(DYNAMIC);

impl TypeObject {
    fn new(datatype: Datatype) -> TypeObject {
        let (holders, attributes) = (AtomicU32::new(1), Attributes::default());
        TypeObject { datatype, holders, name: Mutex::new(None), attributes }
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The name that the program gave it.
    pub(crate) fn name(&self) -> MutexGuard<'_, Option<String>> {
        self.name.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The type of a handle.
///
/// # Errors
/// Class TYPE if there is none.
#[inline]
pub(crate) fn datatype(handle: Type) -> Result<&'static Datatype> {
    if handle.0 >= DYNAMIC {
        return TYPES.get(handle.0).map(|object| &object.datatype).ok_or_else(|| no_type(handle));
    }
    match Basic::from_code(handle.0) {
        Some(basic) => Ok(Datatype::predefined(basic)),
        None => Err(no_type(handle)),
    }
}

/// Bytes of an element of those predefined types that were used, and whose elements lie in a row; zero: ask
/// the type.
static DENSE: [AtomicU8; DYNAMIC as usize] = [const { AtomicU8::new(0) }; DYNAMIC as usize];
/// The bytes of this number of such elements do not overflow.
pub(crate) const DENSE_MOST: u64 = 1 << 55;

/// Bytes of `count` elements, if the type is predefined and they lie in a row from the buffer's begin on;
/// none too for what is wrong, and where the type has to be asked.
#[inline]
pub(crate) fn dense_len(handle: Type, count: i64) -> Option<usize> {
    let size = usize::from(DENSE.get(handle.0 as usize)?.load(Ordering::Relaxed));
    (size > 0 && (count as u64) < DENSE_MOST).then(|| size * count as usize)
}

/// The type, and the bytes of `count` elements, where [`dense_len`] knows them.
#[inline]
pub(crate) fn dense(handle: Type, count: i64) -> Option<(&'static Datatype, usize)> {
    let len = dense_len(handle, count)?;
    Some((Datatype::predefined(Basic::from_code(handle.0)?), len))
}

/// Bytes of an element of a predefined type whose elements lie in a row; none: they do not.
#[inline]
pub(crate) fn dense_size(basic: Basic) -> Option<usize> {
    match DENSE[basic as usize].load(Ordering::Relaxed) {
        0 => look_at_rows(basic as u32, Datatype::predefined(basic)),
        size => Some(size.into()),
    }
}

/// Looks whether the elements of a type lie in a row, and takes note if it is predefined.
#[inline(never)]
fn look_at_rows(handle: u32, datatype: &Datatype) -> Option<usize> {
    let dense = DENSE.get(handle as usize)?;
    let begins = datatype.is_contiguous() && datatype.run(1).is_some_and(|run| run.offset == 0);
    let size = u8::try_from(datatype.size()).ok().filter(|&size| begins && size > 0)?;
    dense.store(size, Ordering::Relaxed);
    Some(size.into())
}

/// The type of a handle, for communication.
///
/// # Errors
/// Class TYPE if there is none, or it is not committed.
pub(crate) fn committed(handle: Type) -> Result<&'static Datatype> {
    let datatype = datatype(handle)?;
    look_at_rows(handle.0, datatype);
    if datatype.is_committed() { Ok(datatype) } else { Err(not_committed()) }
}

/// The type of a handle and what is attached to it.
///
/// # Errors
/// Class TYPE if there is none.
pub(crate) fn type_object(handle: Type) -> Result<Arc<TypeObject>> {
    static FIRST_USE: Mutex<()> = Mutex::new(());
    if let Some(object) = TYPES.share(handle.0) {
        return Ok(object);
    }
    let basic = Basic::from_code(handle.0).ok_or_else(|| no_type(handle))?;
    let _guard = FIRST_USE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(object) = TYPES.share(handle.0) {
        return Ok(object);
    }
    let object = Arc::new(TypeObject::new(Datatype::of(basic)));
    TYPES.set(handle.0, object.clone());
    Ok(object)
}

/// A handle for a type: the one that it has, or a new one. Whoever gets a handle that is not predefined
/// frees it.
pub(crate) fn hand_out_type(datatype: &Datatype) -> Type {
    let handle = datatype.handle();
    match TYPES.get(handle) {
        Some(object) if object.datatype.is_same(datatype) => {
            object.holders.fetch_add(1, Ordering::Relaxed);
        }
        _ if datatype.basic().is_some() => {}
        _ => return insert_type(datatype.clone()),
    }
    Type(datatype.handle())
}

/// A handle for a new type.
pub(crate) fn insert_type(datatype: Datatype) -> Type {
    let handle = TYPES.insert(Arc::new(TypeObject::new(datatype.clone())));
    datatype.set_handle(handle);
    Type(handle)
}

/// Gives a handle back. What uses the type goes on using it.
///
/// # Errors
/// Class TYPE if there is no such type, or it is predefined; what the delete function of an attribute
/// says: then the type stays.
pub(crate) fn free_type(handle: &mut Type) -> Result<()> {
    let found = datatype(*handle)?;
    if found.is_predefined() {
        return Err(Class::TYPE.error("a predefined datatype cannot be freed"));
    }
    let object = TYPES.share(handle.0).ok_or_else(|| no_type(*handle))?;
    if object.holders.load(Ordering::Acquire) == 1 {
        object.attributes.delete_all(handle.0)?;
    }
    if object.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
        found.set_handle(0);
        TYPES.remove(handle.0);
    }
    *handle = Type::NULL;
    Ok(())
}

/// The operator of a handle.
///
/// # Errors
/// Class OP if there is none.
pub(crate) fn operator(handle: Op) -> Result<Operator> {
    let found = match Predefined::from_code(handle.0) {
        Some(op) => Some(Operator::Predefined(op)),
        None => OPS.get(handle.0).cloned(),
    };
    found.ok_or_else(|| match handle {
        Op::NULL => Class::OP.error("the operator is MPI_OP_NULL"),
        Op(index) => Class::OP.error(format!("there is no operator {index}: it never was, or is freed")),
    })
}

/// The operator of a handle, if it is predefined; none: the program made it.
///
/// # Errors
/// As [`operator`].
#[inline]
pub(crate) fn predefined_operator(handle: Op) -> Result<Option<Predefined>> {
    match Predefined::from_code(handle.0) {
        Some(op) => Ok(Some(op)),
        None => operator(handle).map(|_| None),
    }
}

/// A handle for an operator that the program made.
pub(crate) fn hand_out_operator(operator: Operator) -> Op {
    Op(OPS.insert(Arc::new(operator)))
}

/// Gives a handle back. What uses the operator goes on using it.
///
/// # Errors
/// Class OP if there is no such operator, or it is predefined.
pub(crate) fn free_operator(handle: &mut Op) -> Result<()> {
    if let Operator::Predefined(op) = operator(*handle)? {
        return Err(Class::OP.error(format!("the predefined operator {} cannot be freed", op.name())));
    }
    OPS.remove(handle.0);
    *handle = Op::NULL;
    Ok(())
}

/// The group of a handle.
///
/// # Errors
/// Class GROUP if there is none.
pub(crate) fn group(handle: Group) -> Result<Members> {
    if handle == Group::EMPTY {
        return Ok(Members::default());
    }
    GROUPS.get(handle.0).cloned().ok_or_else(|| match handle {
        Group::NULL => Class::GROUP.error("the group is MPI_GROUP_NULL"),
        Group(index) => Class::GROUP.error(format!("there is no group {index}: it never was, or is freed")),
    })
}

/// A handle for a group: the predefined one if nobody is in it.
pub(crate) fn hand_out_group(group: Members) -> Group {
    if group.size() == 0 { Group::EMPTY } else { Group(GROUPS.insert(Arc::new(group))) }
}

/// Gives a handle back; that of the empty group stays valid, since functions give it out, too.
///
/// # Errors
/// Class GROUP if there is no such group.
pub(crate) fn free_group(handle: &mut Group) -> Result<()> {
    group(*handle)?;
    GROUPS.remove(handle.0);
    *handle = Group::NULL;
    Ok(())
}

#[cold]
fn no_type(datatype: Type) -> Error {
    Class::TYPE.error(match datatype {
        Type::NULL => "the datatype is MPI_DATATYPE_NULL".to_string(),
        Type::INVALID => "the datatype is not the handle of a datatype".to_string(),
        Type(index) => format!("there is no datatype {index}: it never was, or is freed"),
    })
}

#[cold]
fn not_committed() -> Error {
    Class::TYPE
        .error("the datatype is not committed: call MPI_Type_commit before it is used in communication")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Form;

    fn pair() -> Datatype {
        Datatype::contiguous(Form::Int, 2, Datatype::predefined(Basic::Int)).unwrap()
    }

    #[test]
    fn a_type_has_one_handle_until_all_holders_have_freed_it() {
        let pair = pair();
        let (mut first, mut second) = (hand_out_type(&pair), hand_out_type(&pair));
        let number = first;
        assert_eq!(first, second);
        free_type(&mut first).unwrap();
        assert!(first.is_null() && datatype(number).unwrap().is_same(&pair));
        free_type(&mut second).unwrap();
        assert_eq!(datatype(number).unwrap_err().class(), Class::TYPE);
        // Contents that are asked for later get a new handle.
        let third = hand_out_type(&pair);
        assert!(third != number && datatype(third).unwrap().is_same(&pair));
    }

    #[test]
    fn predefined_types_keep_their_handles_and_are_not_freed() {
        let int = Type(Basic::Int as u32);
        assert_eq!(hand_out_type(Datatype::predefined(Basic::Int)), int);
        *type_object(int).unwrap().name() = Some("number".into());
        assert_eq!(type_object(int).unwrap().name().as_deref(), Some("number"));
        assert_eq!(hand_out_type(Datatype::predefined(Basic::Int)), int);
        assert_eq!(free_type(&mut { int }).unwrap_err().class(), Class::TYPE);
        assert_eq!(type_object(Type::NULL).map(|_| ()).unwrap_err().class(), Class::TYPE);
    }

    #[test]
    fn types_are_used_when_they_are_committed() {
        let pair = pair();
        let handle = hand_out_type(&pair);
        assert_eq!(committed(handle).unwrap_err().class(), Class::TYPE);
        pair.commit();
        assert!(committed(handle).is_ok() && committed(Type(Basic::Double as u32)).is_ok());
    }

    #[test]
    fn operators_and_groups_end_with_their_handles() {
        let mut op = hand_out_operator(Operator::new(Box::new(|_, _, _, _| {}), true));
        let number = op;
        free_operator(&mut op).unwrap();
        assert_eq!((op, operator(number).unwrap_err().class()), (Op::NULL, Class::OP));
        assert_eq!(free_operator(&mut Op(Predefined::Sum as u32)).unwrap_err().class(), Class::OP);

        let mut some = hand_out_group(Members::new([1, 2]));
        let number = some;
        free_group(&mut some).unwrap();
        assert_eq!((some, group(number).unwrap_err().class()), (Group::NULL, Class::GROUP));
        let mut nobody = hand_out_group(Members::default());
        assert_eq!(nobody, Group::EMPTY);
        free_group(&mut nobody).unwrap();
        assert_eq!(group(Group::EMPTY).unwrap().size(), 0);
        assert_eq!(group(Group::NULL).unwrap_err().class(), Class::GROUP);
    }
}
