//! The paths within its crate that a file names, resolved: `crate::a::b`, `super::x`, `use crate::{a, b::c}`.
use proc_macro2::{Delimiter, TokenTree};

use crate::source::{bracket, inside, is_mark, line, word};

/// A path from the root of the crate, and the line where it is named.
pub struct Named {
    /// The names from the root on; of an import of everything (`*`) the module.
    pub path: Vec<String>,
    /// What the file calls it: its last name, another one that the file gives it (`as`), or `*`.
    pub name: String,
    /// Counted from one.
    pub line: usize,
}

/// All paths that begin with `crate` or `super` in these tokens, which are those of `module`.
pub fn in_tokens(tokens: &[TokenTree], module: &[String]) -> Vec<Named> {
    let mut found = Vec::new();
    search(tokens, module, &mut found);
    found
}

/// What the `use` items of a file give names to in `module`, which the file is: from this crate, or by a path
/// that begins with a module of its own.
pub fn imports(tokens: &[TokenTree], module: &[String]) -> Vec<Named> {
    let mut found = Vec::new();
    let uses = tokens.iter().enumerate().filter(|(_, token)| word(Some(token)).as_deref() == Some("use"));
    uses.for_each(|(index, _)| expand(&tokens[index + 1..], module, &mut found));
    found
}

fn search(tokens: &[TokenTree], module: &[String], found: &mut Vec<Named>) {
    let mut index = 0;
    while index < tokens.len() {
        if let Some(body) = inline_module(&tokens[index..], module) {
            search(&inside(body.0), &body.1, found);
            index += 3;
            continue;
        }
        if let TokenTree::Group(group) = &tokens[index] {
            search(&inside(group), module, found);
        }
        let follows_path =
            index >= 2 && is_mark(tokens.get(index - 1), ':') && is_mark(tokens.get(index - 2), ':');
        let is_start = matches!(word(tokens.get(index)).as_deref(), Some("crate" | "super"));
        // `pub(crate)` and `pub(super)` are no paths: nothing follows within the bracket.
        if is_start && !follows_path && is_mark(tokens.get(index + 1), ':') {
            expand(&tokens[index..], module, found);
        }
        index += 1;
    }
}

/// The body of `mod name { ... }` if these tokens begin with one, and its module.
fn inline_module<'a>(
    tokens: &'a [TokenTree],
    module: &[String],
) -> Option<(&'a proc_macro2::Group, Vec<String>)> {
    word(tokens.first()).filter(|first| first == "mod")?;
    let body = bracket(tokens.get(2), Delimiter::Brace)?;
    let mut inner = module.to_vec();
    inner.push(word(tokens.get(1))?);
    Some((body, inner))
}

/// Follows the path that begins here from `base`, through braces into each of its ends.
fn expand(tokens: &[TokenTree], base: &[String], found: &mut Vec<Named>) {
    let Some(first) = tokens.first() else { return };
    let mut path = base.to_vec();
    let mut rest = tokens;
    let mut name = String::from("*");
    while let Some(next) = word(rest.first()) {
        match next.as_str() {
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" => {}
            next => path.push(next.trim_start_matches("r#").to_owned()),
        }
        let continues = is_mark(rest.get(1), ':') && is_mark(rest.get(2), ':');
        if !continues {
            let renamed = word(rest.get(1)).filter(|mark| mark == "as").and_then(|_| word(rest.get(2)));
            name = renamed.or_else(|| path.last().cloned()).unwrap_or_default();
            break;
        }
        rest = &rest[3..];
        if let Some(group) = bracket(rest.first(), Delimiter::Brace) {
            let inner = inside(group);
            inner.split(|token| is_mark(Some(token), ',')).for_each(|branch| expand(branch, &path, found));
            return;
        }
    }
    found.push(Named { path, name, line: line(first) });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<String> {
        let tokens = crate::source::tokens(text).expect("Rust");
        in_tokens(&tokens, &["a".into(), "b".into()]).iter().map(|named| named.path.join("::")).collect()
    }

    #[test]
    fn paths_are_followed_to_their_ends() {
        assert_eq!(named("use crate::{x::Y, z::{self, W}};"), ["x::Y", "z", "z::W"]);
        assert_eq!(named("use super::c; fn f(q: super::super::d::E) {}"), ["a::c", "d::E"]);
        assert_eq!(named("use super::*;"), ["a"]);
        assert_eq!(named("mod t { use super::*; use super::super::c::D; }"), ["a::b", "a::c::D"]);
    }

    #[test]
    fn imports_have_the_names_that_the_file_uses() {
        let tokens =
            crate::source::tokens("pub use c::{D, E as F}; use super::g::*; fn f() -> impl use<> {}");
        let found = imports(&tokens.expect("Rust"), &["a".into()]);
        let shown: Vec<_> = found.iter().map(|one| format!("{}={}", one.name, one.path.join("::"))).collect();
        assert_eq!(shown, ["D=a::c::D", "F=a::c::E", "*=g", "*=a"]);
    }

    #[test]
    fn visibilities_and_macros() {
        assert_eq!(named("pub(crate) fn f() {} pub(super) struct S;"), Vec::<String>::new());
        assert_eq!(named("vec![crate::x::y()]"), ["x::y"]);
        assert_eq!(named("use other::crate_name::x;"), Vec::<String>::new());
    }
}
