//! The functions of the fronts: for each function of the table one that takes the arguments as C gives
//! them, checks and translates them, calls the core, and translates what it answers. They are generic over
//! the binary interface.

use crate::argument::{Argument, Direction, Length};
use crate::ctype::{Form, is_function, rust, rust_scalar};
use crate::function::{Function, functions, symbol};
use crate::place::{Place, capital};
use std::fmt::Write;

/// The source of all wrappers.
pub fn source() -> String {
    let mut text = String::new();
    for function in functions() {
        wrapper(&mut text, function, Form::Int);
        if function.large {
            wrapper(&mut text, function, Form::Large);
        }
    }
    text
}

/// The arguments in Rust, and the type that is returned.
pub(crate) fn signature(function: &Function, form: Form) -> (String, &'static str) {
    let arguments = function.arguments.iter();
    let arguments: Vec<_> = arguments.map(|each| format!("{}: {}", each.name, rust(each, form))).collect();
    let result = function.result.as_deref().map_or("i32", |kind| rust_scalar(kind, Form::Int));
    (arguments.join(", "), result)
}

fn wrapper(text: &mut String, function: &Function, form: Form) {
    let name = form.name(&function.snake());
    let (arguments, result) = signature(function, form);
    let shown = symbol(&form.name(&function.name));
    let body = body(function, form, &shown);
    writeln!(
        text,
        "/// `{shown}`\n///\n/// # Safety\n/// As the standard says about its arguments.\n#[inline]\n\
         pub unsafe fn {name}<A: Abi>({arguments}) -> {result} {{\n{body}}}\n"
    )
    .expect("strings take everything");
}

fn body(function: &Function, form: Form, shown: &str) -> String {
    let owner = owner(function);
    if function.result.is_some() {
        let names: Vec<_> = function.arguments.iter().map(|each| &*each.name).collect();
        return match function.by_hand {
            true => format!("    by_hand::{}::<A>({})\n", function.snake(), names.join(", ")),
            false => format!("    api::{}()\n", function.core()),
        };
    }
    let mut steps = Steps::default();
    if !function.early {
        writeln!(steps.before, "        enter()?;").expect("strings take everything");
    }
    for argument in &function.arguments {
        steps.argument(function, argument);
    }
    let call = steps.call(function, form);
    let names: Vec<_> = function.arguments.iter().map(|each| &*each.name).collect();
    let failed = match function.is_of_tools() {
        // The tools interface has no error handlers.
        true => "tool_failed::<A>(&error)".into(),
        false => format!("fail::<A>(\"{shown}\", {owner}, &error)"),
    };
    let (began, ended) = traced(function, shown);
    // Not a closure, which would be given the places of its arguments where it is not inlined. The object is
    // looked at after a failure only: before, that would be one more step of every call.
    format!(
        "{began}    #[inline(always)]\n    fn work<A: Abi>({}) -> Result<()> {{\n{}{call}        \
         Ok(())\n    }}\n\
         \x20   let code = match work::<A>({}) {{\n        Ok(()) => 0,\n        \
         Err(error) => {failed},\n    }};\n\
         {ended}    code\n",
        signature(function, form).0,
        steps.before,
        names.join(", ")
    )
}

/// Whether it is an access of one process to a file.
fn is_access(function: &Function) -> bool {
    let name = &function.name;
    let moves =
        ["File_read", "File_write", "File_iread", "File_iwrite"].iter().any(|each| name.starts_with(each));
    moves && !name.contains("_all") && !name.contains("_ordered")
}

/// What a function does first in which processes may learn of each other's accesses to files.
fn settles() -> String {
    "    if api::is_observed() {\n        api::settle_files();\n    }\n".into()
}

/// What a function that communicates or waits does before and after its work, for who observes calls: two
/// looks at a flag, if nobody does.
fn traced(function: &Function, shown: &str) -> (String, String) {
    let chapters = [
        "pt2pt communication",
        "pt2pt completion",
        "partitioned",
        "collectives",
        "neighbourhood",
        "RMA",
        "MPI-IO",
        "failure mitigation",
    ];
    // Here a process may learn what another one has done, but for a trace they say nothing.
    let joins = [
        "environment",
        "pt2pt buffer management",
        "communicators and groups",
        "process topologies",
        "dynamic processes",
        "sessions",
    ];
    // These only look something up.
    let quiet = ["Status_", "Get_count", "Win_get_", "Win_set_", "File_get_"];
    let is_of = |chapter: &&str| function.chapter.starts_with(chapter);
    if quiet.iter().any(|prefix| function.name.starts_with(prefix)) {
        return Default::default();
    }
    if !chapters.iter().any(is_of) {
        return (if joins.iter().any(is_of) { settles() } else { String::new() }, String::new());
    }
    let call = if is_access(function) { "access" } else { "call" };
    let has = |name: &str| function.arguments.iter().any(|each| each.name == name && each.length.is_none());
    let from = match has("source") && has("comm") {
        true => "take::comm::<A>(\"comm\", comm).ok(), A::rank_in(source)",
        false => "None, 0",
    };
    (
        format!("    if api::is_observed() {{\n        api::{call}_begins();\n    }}\n"),
        format!("    if api::is_observed() {{\n        api::{call}_ended(\"{shown}\", {from});\n    }}\n"),
    )
}

/// The object whose error handler is asked. A request and a message have the one of their communicator; of
/// several requests nobody knows which is meant.
fn owner(function: &Function) -> String {
    let goes_in = |each: &&Argument| each.direction != Direction::Out && each.length.is_none();
    let of_kind = |kind: &'static str| {
        let is_owner = move |each: &&Argument| goes_in(each) && each.kind == kind;
        function.arguments.iter().find(is_owner).map(|argument| (kind, argument))
    };
    let kinds = ["comm", "session", "win", "file", "request", "message", "errhandler", "group"];
    if function.chapter == "MPI-IO" && of_kind("file").is_none() {
        // What makes files, or needs none, has the handler of MPI_FILE_NULL (MPI 5.0, section 14.7).
        return "Owner::NoFile".into();
    }
    match kinds.into_iter().find_map(of_kind) {
        // A handler that is given back hears of nothing any more.
        Some(("errhandler", Argument { direction: Direction::InOut, .. })) | None => "Owner::None".into(),
        Some(("file", Argument { name, direction: Direction::In, .. })) => {
            format!("Owner::File(A::file_in({name}))")
        }
        Some(("file", Argument { name, .. })) => {
            format!("take::read(\"{name}\", {name}).map_or(Owner::NoFile, |it| Owner::File(A::file_in(it)))")
        }
        Some((kind, Argument { name, direction: Direction::In, .. })) => {
            format!("Owner::{}({name})", capital(kind))
        }
        Some((kind, Argument { name, .. })) => {
            format!("take::read(\"{name}\", {name}).map_or(Owner::None, Owner::{})", capital(kind))
        }
    }
}

/// Code before the call, the argument, and code after it.
#[derive(Default)]
struct Steps {
    before: String,
    call: Vec<String>,
    /// After the call, even if it fails.
    always: String,
    /// Names for what the call answers.
    answers: Vec<String>,
    /// With what it answers.
    after: String,
    /// The list before, for [`Length::Last`].
    list: String,
}

impl Steps {
    fn argument(&mut self, function: &Function, argument: &Argument) {
        let place = Place::of(argument);
        let name = &argument.name;
        if let Some(length) = &argument.length {
            // Functions that are written by hand get lists as C gave them.
            if !(function.by_hand && place == Place::AnswerList) {
                self.length(argument, length, place);
            }
        }
        let lines = place.lines(function, argument);
        self.before.push_str(&lines.before);
        self.always.push_str(&lines.always);
        self.after.push_str(&lines.after);
        self.call.extend(lines.call);
        self.answers.extend(lines.answer);
        if argument.length.is_some() {
            self.list = format!("{name}_");
        }
    }

    /// Defines `NAME_len` for a list.
    fn length(&mut self, argument: &Argument, length: &Length, place: Place) {
        if place == Place::Raw {
            return;
        }
        let name = &argument.name;
        let value = match length {
            Length::Argument(count) => format!("{count}_"),
            Length::Peers => "take::peers(comm_peek)?".into(),
            Length::Members => "take::members(comm_peek)?".into(),
            Length::Root => "take::peers_at_root(comm_peek, root_peek)?".into(),
            Length::Sends => "take::sends::<A>(comm_peek, sendbuf)?".into(),
            Length::Sources => "take::sources(comm_peek)?".into(),
            Length::Targets => "take::targets(comm_peek)?".into(),
            Length::CartDims => "take::cartdims(comm_peek)?".into(),
            Length::Last => format!("take::last(&{})", self.list),
            Length::Degrees => "take::sum(&degrees_)".into(),
            Length::Unread => return,
        };
        let line = |text: &str| format!("        {text}\n");
        if value.contains("comm_peek") && !self.before.contains("let comm_peek") {
            self.before.push_str(&line("let comm_peek = take::comm::<A>(\"comm\", comm)?;"));
        }
        if value.contains("root_peek") && !self.before.contains("let root_peek") {
            self.before.push_str(&line("let root_peek = A::rank_in(root);"));
        }
        self.before.push_str(&line(&format!("let {name}_len = {value};")));
    }

    fn call(&self, function: &Function, form: Form) -> String {
        let mut arguments = self.call.clone();
        if function.tells_form {
            arguments.insert(0, format!("Form::{form:?}"));
        }
        let arguments = arguments.join(", ");
        if function.by_hand {
            let name = function.core();
            return format!(
                "        let answer = by_hand::{name}::<A{}>({arguments});\n{}        answer?;\n",
                counts(function, form),
                self.always
            );
        }
        let answers = match &*self.answers {
            [] => "()".to_string(),
            [one] => one.clone(),
            several => format!("({})", several.join(", ")),
        };
        format!(
            "        let answer = api::{}({arguments}).answer();\n{}        let {answers} = answer?;\n{}",
            function.core(),
            self.always,
            self.after
        )
    }
}

/// Type arguments of what is done by hand: the type of counts that go out.
fn counts(function: &Function, form: Form) -> &'static str {
    let counts = |each: &Argument| {
        each.kind == "count" && each.direction == Direction::Out && !is_function(&each.kind)
    };
    match (function.arguments.iter().any(counts), form) {
        (false, _) => "",
        (true, Form::Int) => ", i32",
        (true, Form::Large) => ", i64",
    }
}
