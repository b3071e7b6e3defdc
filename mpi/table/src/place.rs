//! How one argument of a wrapper is translated: by what it is and where it goes.

use crate::argument::{Argument, Direction};
use crate::ctype::{is_function, is_handle, is_pointer};
use crate::function::Function;

/// How an argument is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A value for the core.
    Value,
    /// A list for the core.
    List,
    /// How long lists are.
    Length,
    /// Nothing for the core.
    Nothing,
    /// How long a string is that the core answers.
    Written,
    /// Handed on as C gave it.
    Raw,
    /// A list of weights, or none.
    Weights,
    /// A value that the core changes.
    Changed,
    /// A list that the core changes.
    ChangedList,
    /// A status that is filled in, if the program wants it.
    Status,
    /// Statuses that are filled in, if the program wants them.
    Statuses,
    /// A value that the core answers.
    Answer,
    /// A list that the core answers.
    AnswerList,
}

/// The lines for one argument.
#[derive(Default)]
pub(crate) struct Lines {
    /// Before the call.
    pub before: String,
    /// The argument that is handed over.
    pub call: Option<String>,
    /// After the call, even if it fails.
    pub always: String,
    /// The name of what the call answers.
    pub answer: Option<String>,
    /// With what the call answers.
    pub after: String,
}

impl Place {
    pub(crate) fn of(argument: &Argument) -> Place {
        let list = argument.length.is_some();
        let unread = argument.length == Some(crate::Length::Unread);
        match (&*argument.kind, argument.direction) {
            (_, Direction::Unused) => Place::Nothing,
            (kind, _) if is_function(kind) || kind == "raw_status" || unread || is_pointer(kind) => {
                Place::Raw
            }
            ("len" | "length", _) => Place::Length,
            ("written", _) => Place::Written,
            ("choice" | "location", _) => Place::Value,
            ("status", Direction::Out) if list => Place::Statuses,
            ("status", Direction::Out) => Place::Status,
            ("weight", _) => Place::Weights,
            (_, Direction::In | Direction::Lent) if list => Place::List,
            (_, Direction::In | Direction::Lent) => Place::Value,
            (_, Direction::InOut) if list => Place::ChangedList,
            (_, Direction::InOut) => Place::Changed,
            (_, _) if list => Place::AnswerList,
            _ => Place::Answer,
        }
    }

    pub(crate) fn lines(self, function: &Function, argument: &Argument) -> Lines {
        let name = &argument.name;
        let kind = conversion(&argument.kind);
        let value = |text: String| Lines { call: Some(text), ..Lines::default() };
        // What is done by hand gets the places for answers, and writes them itself. How much room there is
        // for a list, and for a string, it knows alone.
        // What counts at the root may be anything elsewhere.
        let at_root = function.by_hand && function.chapter == "dynamic processes";
        if at_root && !matches!(&*argument.kind, "comm" | "root") {
            return value(name.clone());
        }
        // Tools may pass NULL for what they do not want to know.
        let of_tools = function.by_hand && function.is_of_tools();
        let goes_out = !matches!(argument.direction, Direction::In | Direction::Lent);
        if of_tools && goes_out && argument.kind != "choice" {
            return value(name.clone());
        }
        if function.by_hand && matches!(self, Place::Answer | Place::AnswerList | Place::Raw) {
            let before = match self == Place::Answer && argument.kind != "string" {
                true => checked(name),
                false => String::new(),
            };
            return Lines { before, ..value(name.clone()) };
        }
        match self {
            Place::Nothing => Lines::default(),
            Place::Written => Lines { before: checked(name), ..Lines::default() },
            Place::Raw => value(name.clone()),
            Place::Value => value(incoming(function, argument)),
            Place::Length => Lines {
                before: line(format!("let {name}_ = take::length(\"{name}\", i64::from({name}))?;")),
                call: function.by_hand.then(|| format!("{name}_")),
                ..Lines::default()
            },
            Place::List => Lines {
                before: line(format!(
                    "let {name}_ = take::list(\"{name}\", {name}, {name}_len, \
                     |it| take::{kind}::<A>(\"{name}\", it))?;"
                )),
                call: Some(format!("&{name}_")),
                ..Lines::default()
            },
            Place::Weights => Lines {
                before: line(format!("let {name}_ = take::weights::<A>(\"{name}\", {name}, {name}_len)?;")),
                call: Some(format!("{name}_.as_deref()")),
                ..Lines::default()
            },
            Place::Changed => changed(name, kind),
            Place::ChangedList => changed_list(name, kind),
            Place::Status => status(name),
            Place::Statuses => statuses(name),
            Place::Answer => answer(function, argument, kind),
            Place::AnswerList => Lines {
                before: line(format!("take::places(\"{name}\", {name}, {name}_len)?;")),
                answer: Some(format!("{name}_")),
                after: line(format!("give::list({name}, {name}_len, {name}_, give::{kind}::<A>);")),
                ..Lines::default()
            },
        }
    }
}

fn line(text: String) -> String {
    format!("        {text}\n")
}

/// The name of the conversion of a kind: words that Rust keeps for itself are others.
fn conversion(kind: &str) -> &str {
    match kind {
        "type" => "datatype",
        "root" => "rank",
        "T_pvar_handle" => "pvar_handle",
        "T_cb_safety" => "safety",
        kind if kind.starts_with("T_") => "tool",
        kind => kind,
    }
}

/// The expression that makes the core's value of an argument.
fn incoming(function: &Function, argument: &Argument) -> String {
    let name = &argument.name;
    let kind = conversion(&argument.kind);
    match (&*argument.kind, argument.direction) {
        ("choice", Direction::In) => format!("A::buffer(({name}).cast_mut()).cast_const()"),
        ("choice", _) => format!("A::buffer({name})"),
        ("location", _) => name.clone(),
        ("word", _) => format!("{name}.expose_provenance()"),
        ("type", Direction::In) if function.checks_data_itself() => {
            format!("take::any_datatype::<A>({name})")
        }
        ("count", _) if name.ends_with("count") && !function.checks_data_itself() => {
            format!("take::some(\"{name}\", {name})?")
        }
        ("string", _) => format!("&take::string(\"{name}\", {name})?"),
        ("status", _) => format!("&take::status::<A>(\"{name}\", {name})?"),
        (_, Direction::Lent) => format!("take::{kind}::<A>(\"{name}\", take::read(\"{name}\", {name})?)?"),
        _ => format!("take::{kind}::<A>(\"{name}\", {name})?"),
    }
}

fn changed(name: &str, kind: &str) -> Lines {
    let taken = match kind {
        "status" => format!("let mut {name}_ = take::status::<A>(\"{name}\", {name})?;"),
        _ => format!("let mut {name}_ = take::{kind}::<A>(\"{name}\", take::read(\"{name}\", {name})?)?;"),
    };
    let given = match kind {
        "status" => format!("give::status::<A>({name}, &{name}_);"),
        "count" | "bytes" => format!("give::count({name}, {name}_);"),
        _ => format!("give::value({name}, give::{kind}::<A>({name}_));"),
    };
    Lines {
        before: line(taken),
        call: Some(format!("&mut {name}_")),
        always: line(given),
        ..Lines::default()
    }
}

fn changed_list(name: &str, kind: &str) -> Lines {
    Lines {
        before: line(format!(
            "let mut {name}_ = take::list(\"{name}\", {name}, {name}_len, \
             |it| take::{kind}::<A>(\"{name}\", it))?;"
        )),
        call: Some(format!("&mut {name}_")),
        always: line(format!("give::list({name}, {name}_len, {name}_, give::{kind}::<A>);")),
        ..Lines::default()
    }
}

fn status(name: &str) -> Lines {
    Lines {
        before: line(format!("let mut {name}_ = take::room_for_status::<A>({name});")),
        call: Some(format!("{name}_.as_mut()")),
        always: line(format!("if let Some(it) = &{name}_ {{ give::status::<A>({name}, it); }}")),
        ..Lines::default()
    }
}

fn statuses(name: &str) -> Lines {
    Lines {
        before: line(format!("let mut {name}_ = take::room_for_statuses::<A>({name}, {name}_len);")),
        call: Some(format!("{name}_.as_deref_mut()")),
        always: line(format!("if let Some(all) = &{name}_ {{ give::statuses::<A>({name}, all); }}")),
        ..Lines::default()
    }
}

fn answer(function: &Function, argument: &Argument, kind: &str) -> Lines {
    let name = &argument.name;
    let after = match &*argument.kind {
        "string" => {
            let room = argument.room.as_deref().expect("strings that go out have a room");
            let written = function.arguments.iter().find(|each| each.kind == "written");
            let written = written.map_or("std::ptr::null_mut()", |each| &*each.name);
            format!("give::string({name}, A::{room}, &{name}_, {written});")
        }
        "count" | "displ" | "bytes" => format!("give::count({name}, {name}_);"),
        _ => format!("give::value({name}, give::{kind}::<A>({name}_));"),
    };
    // Nobody is to take what was in its place before for what was asked for.
    let always = match is_handle(&argument.kind) {
        true if argument.kind == "file" => {
            line(format!("if answer.is_err() {{ give::no_file::<A>({name}); }}"))
        }
        true => line(format!(
            "if answer.is_err() {{ give::null::<A>({name}, Kind::{}); }}",
            capital(&argument.kind)
        )),
        false => String::new(),
    };
    Lines { before: checked(name), answer: Some(format!("{name}_")), always, after: line(after), call: None }
}

/// Asks whether there is a place for an answer, before anything is done.
fn checked(name: &str) -> String {
    line(format!("take::place(\"{name}\", {name})?;"))
}

/// The name of a kind of handles in the fronts' Rust.
pub(crate) fn capital(kind: &str) -> String {
    kind[..1].to_uppercase() + &kind[1..]
}
