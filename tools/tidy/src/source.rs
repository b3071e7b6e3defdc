//! Rust source as a tree of tokens: no comments, no strings, balanced brackets, and the line of each.
//!
//! Tokens instead of a syntax tree see into macros, and outlive new syntax.
use std::str::FromStr;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The tokens of a file, or why it has none.
pub fn tokens(text: &str) -> Result<Vec<TokenTree>, String> {
    let stream =
        TokenStream::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| error.to_string())?;
    Ok(stream.into_iter().collect())
}

/// The tokens within a bracket.
pub fn inside(group: &Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}

/// The line of a token, counted from one.
pub fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

/// The word, if the token is a keyword or a name.
pub fn word(token: Option<&TokenTree>) -> Option<String> {
    match token? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

/// Whether the token is this one punctuation mark.
pub fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

/// The bracket of this kind, if the token is one.
pub fn bracket(token: Option<&TokenTree>, kind: Delimiter) -> Option<&Group> {
    match token? {
        TokenTree::Group(group) if group.delimiter() == kind => Some(group),
        _ => None,
    }
}

/// The contents of a plain string literal.
pub fn string(token: Option<&TokenTree>) -> Option<String> {
    let Some(TokenTree::Literal(literal)) = token else { return None };
    let text = literal.to_string();
    text.strip_prefix('"')?.strip_suffix('"').map(str::to_owned)
}

/// Calls `visit` with every row of neighbouring tokens: the whole file, then the inside of each bracket.
pub fn rows(tokens: &[TokenTree], visit: &mut dyn FnMut(&[TokenTree])) {
    visit(tokens);
    for token in tokens {
        if let TokenTree::Group(group) = token {
            rows(&inside(group), visit);
        }
    }
}
