//! Just enough of TypeScript's declaration syntax: members of classes and interfaces, and types.
//!
//! What is not understood becomes [`Type::Any`]; a declaration file can be odd, but it can never
//! make a rehearsal fail.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Type;
use super::token::{Token, tokens};

/// A member before its type's references are followed.
#[derive(Debug, PartialEq)]
pub(super) struct DeclaredMember {
    pub(super) name: String,
    pub(super) type_: Written,
    pub(super) optional: bool,
    pub(super) forces_new: bool,
}

/// A type as it is written.
#[derive(Debug, PartialEq)]
pub(super) enum Written {
    Known(Type),
    List(Box<Written>),
    Map(Box<Written>),
    Object(Vec<DeclaredMember>),
    /// `outputs.s3.Rule`, without `outputs`.
    Output(Vec<String>),
}

/// The output properties of `export declare class <name>`.
pub(super) fn class(text: &str, name: &str) -> Option<Vec<DeclaredMember>> {
    let start = text.find(&format!("export declare class {name} "))?;
    let body = body(&text[start..])?;
    let tokens = tokens(body);
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
    };
    Some(parser.members(true))
}

/// The members of `export interface <name>`.
pub(super) fn interface(text: &str, name: &str) -> Option<Vec<DeclaredMember>> {
    let start = text.find(&format!("export interface {name} "))?;
    members_of(&text[start..])
}

/// A file of declarations with the places of its outermost namespaces. The types of a large package are
/// megabytes in hundreds of namespaces, and a rehearsal asks for thousands of them.
pub(super) struct DeclarationFile {
    text: String,
    namespaces: BTreeMap<String, Range<usize>>,
}

impl DeclarationFile {
    pub(super) fn new(text: String) -> Self {
        const MARKER: &str = "export declare namespace ";
        let mut namespaces = BTreeMap::new();
        for (start, _) in text.match_indices(MARKER) {
            let Some((name, _)) = text[start + MARKER.len()..].split_once(" {") else {
                continue;
            };
            let place = start..start + namespace(&text[start..], 0).len();
            namespaces.entry(name.to_owned()).or_insert(place);
        }
        Self { text, namespaces }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The members of an interface inside namespaces: `["s3", "Rule"]`.
    pub(super) fn namespaced(&self, path: &[String]) -> Option<Vec<DeclaredMember>> {
        let (name, namespaces) = path.split_last()?;
        let mut region = self.text.as_str();
        for (depth, within) in namespaces.iter().enumerate() {
            if depth == 0 {
                region = &self.text[self.namespaces.get(within)?.clone()];
                continue;
            }
            let marker = format!("{}namespace {within} {{", "    ".repeat(depth));
            region = namespace(&region[region.find(&marker)?..], depth);
        }
        let start = region.find(&format!("interface {name} {{"))?;
        members_of(&region[start..])
    }
}

/// A namespace ends where its own closing brace stands alone at its indentation.
fn namespace(text: &str, depth: usize) -> &str {
    let end = format!("\n{}}}", "    ".repeat(depth));
    &text[..text.find(&end).map_or(text.len(), |at| at + end.len())]
}

fn members_of(text: &str) -> Option<Vec<DeclaredMember>> {
    let tokens = tokens(body(text)?);
    Some(
        Parser {
            tokens: &tokens,
            at: 0,
        }
        .members(false),
    )
}

/// What stands between the first brace and the one that closes it.
fn body(text: &str) -> Option<&str> {
    let open = text.find('{')?;
    let mut depth = 0_usize;
    let mut at = open;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'/' if text[at..].starts_with("/*") => at += text[at..].find("*/").unwrap_or(0) + 1,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[open + 1..at]);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a> Parser<'_, 'a> {
    /// Members up to the end or a closing brace; of a class, only those that are outputs.
    fn members(&mut self, outputs_only: bool) -> Vec<DeclaredMember> {
        let mut members = Vec::new();
        let mut doc = "";
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Doc(text) => {
                    doc = text;
                    self.at += 1;
                }
                Token::Sign('}') => break,
                Token::Name("readonly") if outputs_only => {
                    self.at += 1;
                    members.extend(self.member(doc));
                    doc = "";
                }
                _ if outputs_only => {
                    self.skip_statement();
                    doc = "";
                }
                _ => {
                    members.extend(self.member(doc));
                    doc = "";
                }
            }
        }
        members
    }

    fn member(&mut self, doc: &str) -> Option<DeclaredMember> {
        if let Some([Token::Name("readonly"), Token::Name(_) | Token::Text(_)]) =
            self.tokens.get(self.at..self.at + 2)
        {
            self.at += 1;
        }
        let name = match self.tokens.get(self.at) {
            Some(Token::Name(name) | Token::Text(name)) => (*name).to_owned(),
            _ => {
                self.skip_statement();
                return None;
            }
        };
        self.at += 1;
        let mut optional = self.take('?');
        if !self.take(':') {
            self.skip_statement();
            return None;
        }
        let (type_, may_be_absent) = self.union();
        optional |= may_be_absent;
        self.skip_statement();
        Some(DeclaredMember {
            name,
            type_,
            optional,
            forces_new: forces_new(doc),
        })
    }

    /// Alternatives; the first that says something wins. Also whether one of them is `undefined`.
    fn union(&mut self) -> (Written, bool) {
        let (mut result, mut optional) = (None, false);
        loop {
            self.take('|');
            match self.postfix() {
                None => optional = true,
                Some((type_, inner_optional)) => {
                    optional |= inner_optional;
                    result.get_or_insert(type_);
                }
            }
            if !matches!(self.tokens.get(self.at), Some(Token::Sign('|'))) {
                break;
            }
        }
        (result.unwrap_or(Written::Known(Type::Any)), optional)
    }

    fn postfix(&mut self) -> Option<(Written, bool)> {
        let mut type_ = self.primary();
        while matches!(
            self.tokens.get(self.at..self.at + 2),
            Some([Token::Sign('['), Token::Sign(']')])
        ) {
            self.at += 2;
            type_ = type_.map(|(inner, _)| (Written::List(Box::new(inner)), false));
        }
        type_
    }

    /// `None` for `undefined`.
    fn primary(&mut self) -> Option<(Written, bool)> {
        let known = |type_| Some((Written::Known(type_), false));
        match self.tokens.get(self.at)? {
            Token::Text(text) => {
                self.at += 1;
                known(Type::Literal((*text).to_owned()))
            }
            Token::Sign('{') => Some((self.braces(), false)),
            Token::Sign('(') => {
                self.at += 1;
                let inner = self.union();
                self.take(')');
                Some(inner)
            }
            Token::Name(_) => self.named(),
            Token::Doc(_) | Token::Sign(_) => {
                self.at += 1;
                known(Type::Any)
            }
        }
    }

    fn braces(&mut self) -> Written {
        self.at += 1;
        let type_ = if self.take('[') {
            // `[key: string]: T`
            while !self.take(']') && self.at < self.tokens.len() {
                self.at += 1;
            }
            self.take(':');
            Written::Map(Box::new(self.union().0))
        } else {
            Written::Object(self.members(false))
        };
        while self.at < self.tokens.len() && !self.take('}') {
            self.at += 1;
        }
        type_
    }

    fn named(&mut self) -> Option<(Written, bool)> {
        let path = self.path();
        let arguments = if self.take('<') {
            let first = self.union();
            let mut depth = 1;
            while depth > 0 && self.at < self.tokens.len() {
                match self.tokens[self.at] {
                    Token::Sign('<') => depth += 1,
                    Token::Sign('>') => depth -= 1,
                    _ => {}
                }
                self.at += 1;
            }
            Some(first)
        } else {
            None
        };
        let known = |type_| Some((Written::Known(type_), false));
        match (path.as_slice(), arguments) {
            (["undefined" | "null"], _) => None,
            (["string"], _) | (["enums", ..], _) => known(Type::Text),
            (["number"], _) => known(Type::Number),
            (["boolean" | "true" | "false"], _) => known(Type::Bool),
            (["pulumi", "Output" | "Input"], Some(inner)) => Some(inner),
            (["Array"], Some((inner, _))) => Some((Written::List(Box::new(inner)), false)),
            (["Record"], _) => Some((Written::Map(Box::new(Written::Known(Type::Any))), false)),
            (["outputs", rest @ ..], _) => Some((
                Written::Output(rest.iter().map(|part| (*part).to_owned()).collect()),
                false,
            )),
            _ => known(Type::Any),
        }
    }

    fn path(&mut self) -> Vec<&'a str> {
        let mut path = Vec::new();
        while let Some(Token::Name(name)) = self.tokens.get(self.at) {
            path.push(*name);
            self.at += 1;
            if !self.take('.') {
                break;
            }
        }
        path
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.tokens.get(self.at) == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    /// To behind the next `;` or comma of this level, or to the brace that ends it.
    fn skip_statement(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Sign('{' | '(' | '[') => depth += 1,
                Token::Sign('}') if depth == 0 => return,
                Token::Sign('}' | ')' | ']') => depth = depth.saturating_sub(1),
                Token::Sign(';' | ',') if depth == 0 => {
                    self.at += 1;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}

/// SDKs say in words when a change cannot be made in place.
pub(super) fn forces_new(doc: &str) -> bool {
    let doc = doc.to_ascii_lowercase();
    [
        "forces new resource",
        "forces a new resource",
        "force a new resource",
        "forces replacement",
        "force a replacement",
        "force a recreation",
        "forces recreation",
        "force resource recreation",
        "changing this creates a new resource",
        "changing this value creates a new resource",
        "changed, creates a new resource",
        "forces new",
    ]
    .iter()
    .any(|phrase| doc.contains(phrase))
}
