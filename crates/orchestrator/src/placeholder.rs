//! Values known only at run time: `{{RUNTIME:<type>:<parameters>}}`.
//!
//! A text may hold several, between other characters, and one may stand inside another, where it
//! is resolved first: `{{RUNTIME:calculate:subnets:{{RUNTIME:network:vpcCidr}}:24:3}}`. A default
//! after `|` is used when the value does not exist: `{{RUNTIME:env:OWNER|nobody}}`. The word `secret`
//! after the last `|` makes the value a secret: `{{RUNTIME:env:TOKEN|secret}}`. A text that is
//! one placeholder and nothing else keeps the type of its value; otherwise values become text.
//!
//! A resolver is named with an output and its inputs: `{{RUNTIME:ipam:cidr:prefix_length=24}}`. At least one
//! input tells it from a stack of the same name.
//!
//! This module reads and writes placeholders. It resolves nothing.

use std::fmt;
use std::ops::Range;

use nimbus_core::ComponentName;
use nimbus_resolvers::ResolverKind;

const OPEN: &str = "{{RUNTIME:";
const CLOSE: &str = "}}";
/// After the last `|`: nobody may see the value.
const SECRET: &str = "secret";

/// A text cut into literal pieces and placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateText {
    pub parts: Vec<TextPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPart {
    Text(String),
    Placeholder(Placeholder),
}

/// One placeholder. Its parameters are templates, because placeholders may stand inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    pub source: PlaceholderSource,
    pub default: Option<TemplateText>,
    /// Whether it was said that nobody may see the value.
    pub secret: bool,
    /// Where it stands in the text it was read from.
    pub range: Range<usize>,
}

/// Where the value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceholderSource {
    /// An output of another component of the same deployment and environment.
    Component {
        component: ComponentName,
        output: TemplateText,
    },
    Aws {
        query: String,
        parameters: Vec<TemplateText>,
    },
    Calculate {
        function: String,
        parameters: Vec<TemplateText>,
    },
    Env {
        variable: TemplateText,
    },
    /// An answer of a platform service.
    Resolver {
        resolver: ResolverKind,
        output: String,
        /// `name=value` each.
        parameters: Vec<TemplateText>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PlaceholderError {
    pub reason: String,
    /// The part of the text that is wrong.
    pub range: Range<usize>,
}

impl TemplateText {
    pub fn parse(text: &str) -> Result<Self, PlaceholderError> {
        parse_at(text, 0)
    }

    /// Whether there is anything to resolve.
    pub fn is_literal(&self) -> bool {
        self.parts
            .iter()
            .all(|part| matches!(part, TextPart::Text(_)))
    }

    /// The one placeholder that makes up the whole text.
    pub fn single(&self) -> Option<&Placeholder> {
        match self.parts.as_slice() {
            [TextPart::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    /// Every placeholder, inner ones before the one they stand in.
    pub fn placeholders(&self) -> Vec<&Placeholder> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Placeholder>) {
        for part in &self.parts {
            if let TextPart::Placeholder(placeholder) = part {
                for inner in placeholder.templates() {
                    inner.collect(found);
                }
                found.push(placeholder);
            }
        }
    }
}

impl Placeholder {
    /// The other component and, if it is fixed, the output that this refers to.
    pub fn reference(&self) -> Option<(&ComponentName, Option<&str>)> {
        match &self.source {
            PlaceholderSource::Component { component, output } => {
                Some((component, output.literal()))
            }
            PlaceholderSource::Aws { .. }
            | PlaceholderSource::Calculate { .. }
            | PlaceholderSource::Env { .. }
            | PlaceholderSource::Resolver { .. } => None,
        }
    }

    fn templates(&self) -> impl Iterator<Item = &TemplateText> {
        self.parameters().iter().chain(&self.default)
    }

    /// What has to be known before its source can be asked.
    pub(crate) fn parameters(&self) -> &[TemplateText] {
        match &self.source {
            PlaceholderSource::Component { output, .. } => std::slice::from_ref(output),
            PlaceholderSource::Env { variable } => std::slice::from_ref(variable),
            PlaceholderSource::Aws { parameters, .. }
            | PlaceholderSource::Calculate { parameters, .. }
            | PlaceholderSource::Resolver { parameters, .. } => parameters,
        }
    }
}

impl TemplateText {
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TextPart::Text(text)] => Some(text),
            _ => None,
        }
    }
}

fn parse_at(text: &str, offset: usize) -> Result<TemplateText, PlaceholderError> {
    let mut parts = Vec::new();
    let mut rest = 0;
    while let Some(found) = text[rest..].find(OPEN) {
        let open = rest + found;
        if open > rest {
            parts.push(TextPart::Text(text[rest..open].to_owned()));
        }
        let end = closing(text, open).ok_or_else(|| PlaceholderError {
            reason: format!("the placeholder is not closed with {CLOSE}"),
            range: offset + open..offset + text.len(),
        })?;
        let inner = &text[open + OPEN.len()..end];
        let range = offset + open..offset + end + CLOSE.len();
        parts.push(TextPart::Placeholder(placeholder(
            inner,
            offset + open + OPEN.len(),
            range,
        )?));
        rest = end + CLOSE.len();
    }
    if rest < text.len() {
        parts.push(TextPart::Text(text[rest..].to_owned()));
    }
    Ok(TemplateText { parts })
}

/// Position of the `}}` that closes the placeholder opened at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = open;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(OPEN) {
            depth += 1;
            at += OPEN.len();
        } else if rest.starts_with(CLOSE) {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
            at += CLOSE.len();
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

fn placeholder(
    inner: &str,
    offset: usize,
    range: Range<usize>,
) -> Result<Placeholder, PlaceholderError> {
    let fail = |reason: &str| PlaceholderError {
        reason: reason.to_owned(),
        range: range.clone(),
    };
    let mut pieces = split_outside(inner, '|');
    let marked = pieces.len() > 1
        && pieces
            .last()
            .is_some_and(|last| &inner[last.clone()] == SECRET);
    if marked {
        pieces.pop();
    }
    let (body, default) = match pieces.as_slice() {
        [only] => (only.clone(), None),
        [first, .., last] => {
            let start = pieces[1].start;
            let text = &inner[start..last.end];
            (first.clone(), Some(parse_at(text, offset + start)?))
        }
        [] => return Err(fail("the placeholder is empty")),
    };
    let fields = split_outside(&inner[body], ':');
    let field = |index: usize| {
        fields
            .get(index)
            .map(|range| (&inner[range.clone()], range.start))
            .filter(|f| !f.0.is_empty())
    };
    let (kind, _) = field(0).ok_or_else(|| fail("the placeholder names no source"))?;
    let (name, name_at) =
        field(1).ok_or_else(|| fail("a placeholder is {{RUNTIME:<type>:<parameters>}}"))?;
    let parameters = || {
        fields[2..]
            .iter()
            .map(|range| parse_at(&inner[range.clone()], offset + range.start))
            .collect::<Result<Vec<_>, _>>()
    };
    let resolver = kind.parse::<ResolverKind>().ok();
    let source = match (resolver.filter(|_| fields.len() > 2), kind) {
        (Some(resolver), _) => {
            let output = resolver.definition().output(name);
            PlaceholderSource::Resolver {
                resolver,
                output: output
                    .map_err(|error| fail(&error.to_string()))?
                    .name
                    .to_owned(),
                parameters: parameters()?,
            }
        }
        (None, "aws") => PlaceholderSource::Aws {
            query: name.to_owned(),
            parameters: parameters()?,
        },
        (None, "calculate") => PlaceholderSource::Calculate {
            function: name.to_owned(),
            parameters: parameters()?,
        },
        (None, _) if fields.len() > 2 => {
            return Err(fail("too many parts; a value with `:` cannot be a name"));
        }
        (None, "env") => PlaceholderSource::Env {
            variable: parse_at(name, offset + name_at)?,
        },
        (None, other) => PlaceholderSource::Component {
            component: other.parse().map_err(|_| {
                fail("the source is neither a stack's name nor a resolver, aws, calculate or env")
            })?,
            output: parse_at(name, offset + name_at)?,
        },
    };
    Ok(Placeholder {
        source,
        default,
        secret: marked,
        range,
    })
}

/// Splits at `separator` where it stands outside inner placeholders.
fn split_outside(text: &str, separator: char) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(OPEN) {
            at = closing(text, at).map_or(text.len(), |end| end + CLOSE.len());
            continue;
        }
        let Some(next) = rest.chars().next() else {
            break;
        };
        if next == separator {
            ranges.push(start..at);
            start = at + separator.len_utf8();
        }
        at += next.len_utf8();
    }
    ranges.push(start..text.len());
    ranges
}

impl fmt::Display for TemplateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                TextPart::Text(text) => f.write_str(text)?,
                TextPart::Placeholder(placeholder) => placeholder.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(OPEN)?;
        let (kind, name, parameters) = match &self.source {
            PlaceholderSource::Component { component, output } => {
                (component.as_str(), output.to_string(), &[][..])
            }
            PlaceholderSource::Env { variable } => ("env", variable.to_string(), &[][..]),
            PlaceholderSource::Aws { query, parameters } => {
                ("aws", query.clone(), parameters.as_slice())
            }
            PlaceholderSource::Calculate {
                function,
                parameters,
            } => ("calculate", function.clone(), parameters.as_slice()),
            PlaceholderSource::Resolver {
                resolver,
                output,
                parameters,
            } => (resolver.as_str(), output.clone(), parameters.as_slice()),
        };
        write!(f, "{kind}:{name}")?;
        for parameter in parameters {
            write!(f, ":{parameter}")?;
        }
        if let Some(default) = &self.default {
            write!(f, "|{default}")?;
        }
        if self.secret {
            write!(f, "|{SECRET}")?;
        }
        f.write_str(CLOSE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(text: &str) -> Placeholder {
        TemplateText::parse(text).unwrap().single().unwrap().clone()
    }

    fn text(text: &str) -> TemplateText {
        TemplateText {
            parts: vec![TextPart::Text(text.to_owned())],
        }
    }

    #[test]
    fn the_four_sources_are_read() {
        assert_eq!(
            one("{{RUNTIME:network:vpcId}}").source,
            PlaceholderSource::Component {
                component: "network".parse().unwrap(),
                output: text("vpcId")
            }
        );
        assert_eq!(
            one("{{RUNTIME:aws:latestAmiId:amazonLinux2}}").source,
            PlaceholderSource::Aws {
                query: "latestAmiId".to_owned(),
                parameters: vec![text("amazonLinux2")]
            }
        );
        assert_eq!(
            one("{{RUNTIME:calculate:subnets:10.0.0.0/16:24:3}}").source,
            PlaceholderSource::Calculate {
                function: "subnets".to_owned(),
                parameters: vec![text("10.0.0.0/16"), text("24"), text("3")],
            }
        );
        assert_eq!(
            one("{{RUNTIME:env:HOME}}").source,
            PlaceholderSource::Env {
                variable: text("HOME")
            }
        );
    }

    #[test]
    fn a_resolver_has_an_output_and_inputs_and_a_stack_of_its_name_none() {
        let written = "{{RUNTIME:ipam:cidr:prefix_length=24:label={{RUNTIME:env:L|a}}}}";
        let asked = one(written);
        let PlaceholderSource::Resolver {
            resolver,
            output,
            parameters,
        } = &asked.source
        else {
            panic!("{asked:?}");
        };
        assert_eq!((*resolver, output.as_str()), (ResolverKind::Ipam, "cidr"));
        assert_eq!(parameters.len(), 2);
        assert_eq!(asked.to_string(), written);
        assert!(one("{{RUNTIME:naming:name}}").reference().is_some());
        let error = TemplateText::parse("{{RUNTIME:ipam:vlan:label=a}}").unwrap_err();
        assert!(error.reason.contains("no output `vlan`"), "{error}");
    }

    #[test]
    fn placeholders_stand_between_text_and_inside_each_other() {
        let embedded =
            TemplateText::parse("arn:{{RUNTIME:dns:zone}}/x-{{RUNTIME:env:E|dev}}").unwrap();
        assert_eq!(embedded.parts.len(), 4);
        assert!(embedded.single().is_none());
        assert_eq!(embedded.placeholders()[1].default, Some(text("dev")));

        let nested = "{{RUNTIME:calculate:subnets:{{RUNTIME:network:cidr|10.0.0.0/8}}:24:3}}";
        let template = TemplateText::parse(nested).unwrap();
        let found: Vec<_> = template
            .placeholders()
            .iter()
            .map(|p| p.to_string())
            .collect();
        assert_eq!(found, ["{{RUNTIME:network:cidr|10.0.0.0/8}}", nested]);
        let network = "network".parse().unwrap();
        assert_eq!(
            template.placeholders()[0].reference(),
            Some((&network, Some("cidr")))
        );
    }

    #[test]
    fn the_last_word_may_make_it_a_secret() {
        let marked = one("{{RUNTIME:env:TOKEN|secret}}");
        assert!(marked.secret && marked.default.is_none());
        let both = one("{{RUNTIME:env:TOKEN|a|b|secret}}");
        assert_eq!((both.secret, both.default), (true, Some(text("a|b"))));
        let default = one("{{RUNTIME:env:TOKEN|secrets}}");
        assert_eq!(
            (default.secret, default.default),
            (false, Some(text("secrets")))
        );
    }

    #[test]
    fn malformed_ones_are_refused_with_their_place() {
        for (bad, place) in [
            ("a {{RUNTIME:network:vpcId", 2..25),
            ("{{RUNTIME:}}", 0..12),
            ("{{RUNTIME:network}}", 0..19),
            ("{{RUNTIME:network:}}", 0..20),
            ("{{RUNTIME:net work:x}}", 0..22),
            ("{{RUNTIME:network:a:b}}", 0..23),
            ("{{RUNTIME:env:A:B}}", 0..19),
        ] {
            assert_eq!(TemplateText::parse(bad).unwrap_err().range, place, "{bad}");
        }
    }

    #[test]
    fn other_braces_are_text() {
        for plain in ["", "{{ORGANIZATION}}", "}} {{", "{RUNTIME:a:b}"] {
            assert!(TemplateText::parse(plain).unwrap().is_literal(), "{plain}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_writing_gives_the_text_back(text in r"(\{\{RUNTIME:|\}\}|[a-z:|é/]){0,12}") {
            if let Ok(template) = TemplateText::parse(&text) {
                prop_assert_eq!(template.to_string(), text);
            }
        }
    }
}
