//! Names by pattern: parts in braces are filled in, a sequence makes them unique, and the rules of
//! the type that is named hold.
//!
//! A pattern is text with `{env}`, `{type}`, `{org}`, `{project}`, `{component}`, `{deployment}`,
//! `{region}` and `{seq}` or `{seq:03d}`. Values are written in small letters, and what is neither
//! letter nor digit becomes one `-`.

use serde_json::{Map, Value};

use crate::address::{AddressBlock, AddressFamily};
use crate::config::NamingConfig;
use crate::definition::ResolverKind;
use crate::error::ResolverError;
use crate::question::{ResolverQuestion, UnitFacts};

/// What a name of a type may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRule {
    pub shortest: usize,
    pub longest: usize,
    pub characters: NameCharacters,
}

/// Which characters a name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameCharacters {
    /// A label of the domain name system: small letters, digits and `-`, neither first nor last.
    Label,
    /// Small letters and digits.
    Plain,
}

/// Limits of clouds by type of resource. Whatever is not here is held to a label of 63.
const RULES: &[(&str, NameRule)] = &[
    (
        "bucket",
        NameRule {
            shortest: 3,
            ..NameRule::LABEL
        },
    ),
    (
        "cache",
        NameRule {
            longest: 40,
            ..NameRule::LABEL
        },
    ),
    ("database", NameRule::LABEL),
    (
        "key_vault",
        NameRule {
            shortest: 3,
            longest: 24,
            characters: NameCharacters::Label,
        },
    ),
    (
        "load_balancer",
        NameRule {
            longest: 32,
            ..NameRule::LABEL
        },
    ),
    (
        "storage_account",
        NameRule {
            shortest: 3,
            longest: 24,
            characters: NameCharacters::Plain,
        },
    ),
    ("vm", NameRule::LABEL),
    (
        "windows_vm",
        NameRule {
            longest: 15,
            ..NameRule::LABEL
        },
    ),
];

impl NameRule {
    const LABEL: Self = Self {
        shortest: 1,
        longest: 63,
        characters: NameCharacters::Label,
    };

    /// The rule of a type, with a shorter limit where the configuration has one.
    pub fn of(resource_type: &str, config: &NamingConfig) -> Self {
        let known = RULES.iter().find(|(name, _)| *name == resource_type);
        let rule = known.map_or(Self::LABEL, |(_, rule)| *rule);
        match config.max_length.get(resource_type) {
            // A cloud's own limit cannot be widened.
            Some(limit) => Self {
                longest: rule.longest.min(*limit),
                ..rule
            },
            None => rule,
        }
    }

    /// What is wrong with a name.
    fn problem(self, name: &str) -> Option<String> {
        if name.len() > self.longest {
            return Some(format!(
                "it has {} characters, at most {}",
                name.len(),
                self.longest
            ));
        }
        if name.len() < self.shortest {
            return Some(format!(
                "it has {} characters, at least {}",
                name.len(),
                self.shortest
            ));
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        match self.characters {
            NameCharacters::Plain if !name.chars().all(plain) => {
                Some("only small letters and digits".to_owned())
            }
            NameCharacters::Label
                if !name.chars().all(|c| plain(c) || c == '-')
                    || name.starts_with('-')
                    || name.ends_with('-') =>
            {
                Some("small letters, digits and `-`, neither first nor last".to_owned())
            }
            NameCharacters::Plain | NameCharacters::Label => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    Text(String),
    Value(NamePart),
    Sequence { width: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamePart {
    Environment,
    Type,
    Organization,
    Project,
    Component,
    Deployment,
    Region,
}

/// A pattern that can be filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    parts: Vec<PatternPart>,
}

impl NamePattern {
    pub fn parse(text: &str) -> Result<Self, ResolverError> {
        let refused =
            |problem: String| ResolverError::config(ResolverKind::Naming, "pattern", problem);
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            if open > 0 {
                parts.push(PatternPart::Text(rest[..open].to_owned()));
            }
            let close = rest[open..]
                .find('}')
                .ok_or_else(|| refused("a { is not closed".into()))?;
            let word = &rest[open + 1..open + close];
            parts.push(part(word).ok_or_else(|| {
                refused(format!(
                    "there is no {{{word}}}; there are env, type, org, project, component, \
                     deployment, region, seq and seq:03d"
                ))
            })?);
            rest = &rest[open + close + 1..];
        }
        if !rest.is_empty() {
            parts.push(PatternPart::Text(rest.to_owned()));
        }
        let sequences = parts
            .iter()
            .filter(|part| matches!(part, PatternPart::Sequence { .. }));
        if sequences.count() > 1 {
            return Err(refused("it has more than one {seq}".into()));
        }
        if parts.is_empty() {
            return Err(refused("it is empty".into()));
        }
        Ok(Self { parts })
    }

    fn width(&self) -> Option<usize> {
        self.parts.iter().find_map(|part| match part {
            PatternPart::Sequence { width } => Some(*width),
            PatternPart::Text(_) | PatternPart::Value(_) => None,
        })
    }
}

fn part(word: &str) -> Option<PatternPart> {
    if let Some(format) = word.strip_prefix("seq") {
        let width = match format {
            "" => 1,
            format => {
                let digits = format.strip_prefix(":0")?.strip_suffix('d')?;
                digits
                    .parse()
                    .ok()
                    .filter(|width| (1..=9).contains(width))?
            }
        };
        return Some(PatternPart::Sequence { width });
    }
    Some(PatternPart::Value(match word {
        "env" => NamePart::Environment,
        "type" => NamePart::Type,
        "org" => NamePart::Organization,
        "project" => NamePart::Project,
        "component" => NamePart::Component,
        "deployment" => NamePart::Deployment,
        "region" => NamePart::Region,
        _ => return None,
    }))
}

/// A name of which only the number is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRequest {
    before: String,
    after: String,
    width: Option<usize>,
    pub resource_type: String,
    /// This very number.
    pub sequence: Option<u32>,
    rule: NameRule,
    owner: String,
    domain: Option<String>,
}

impl NameRequest {
    /// What is asked for, by the configured pattern. `owner` is whose configuration it is.
    pub fn read(
        question: &ResolverQuestion,
        config: &NamingConfig,
        facts: &UnitFacts,
        owner: &str,
    ) -> Result<Self, ResolverError> {
        let pattern = config.pattern.as_deref();
        let pattern = pattern.ok_or_else(|| ResolverError::NotConfigured {
            resolver: ResolverKind::Naming.to_string(),
            key: "pattern".to_owned(),
            scope: format!("{} of {owner}", facts.environment),
        })?;
        let pattern = NamePattern::parse(pattern)?;
        let resource_type = question
            .text("resource_type")
            .unwrap_or_default()
            .to_owned();
        let environment = question.text("environment").unwrap_or(&facts.environment);
        let (mut before, mut after) = (String::new(), String::new());
        let mut numbered = false;
        for part in &pattern.parts {
            let side = if numbered { &mut after } else { &mut before };
            match part {
                PatternPart::Text(text) => side.push_str(text),
                PatternPart::Sequence { .. } => numbered = true,
                PatternPart::Value(value) => {
                    let text = match value {
                        NamePart::Environment => environment,
                        NamePart::Type => {
                            let short = config.abbreviations.get(&resource_type);
                            short.map_or(resource_type.as_str(), String::as_str)
                        }
                        NamePart::Organization => &facts.organization,
                        NamePart::Project => &facts.project,
                        NamePart::Component => &facts.component,
                        NamePart::Deployment => &facts.deployment,
                        NamePart::Region => &facts.region,
                    };
                    side.push_str(&slug(text));
                }
            }
        }
        let sequence = question
            .number("sequence")
            .and_then(|n| u32::try_from(n).ok());
        if sequence.is_some() && pattern.width().is_none() {
            let problem = "the pattern has no {seq} for it";
            return Err(ResolverError::input(
                ResolverKind::Naming,
                "sequence",
                problem,
            ));
        }
        let request = Self {
            before,
            after,
            width: pattern.width(),
            rule: NameRule::of(&resource_type, config),
            resource_type,
            sequence,
            owner: owner.to_owned(),
            domain: config.domain.clone(),
        };
        // The first name says whether any can be made, before a number is taken for one.
        request.name(sequence.unwrap_or(1))?;
        Ok(request)
    }

    /// The sequence that it takes its number from: names with other parts count for themselves.
    pub fn sequence_key(&self) -> String {
        format!("{} {}#{}", self.resource_type, self.before, self.after)
    }

    /// The numbers of its sequence as a block, of which one is taken: from 1, or a single one for a
    /// pattern that has no number.
    pub fn numbers(&self) -> AddressBlock {
        let prefix = if self.width.is_some() { 2 } else { 32 };
        AddressBlock::new(AddressFamily::V4, 0, prefix).expect("zero is aligned to every prefix")
    }

    /// Numbers that are never given: counting begins with 1.
    pub fn withheld(&self) -> Option<AddressBlock> {
        self.width.map(|_| number_block(0))
    }

    /// The name with a number, held to the rule of its type.
    pub fn name(&self, number: u32) -> Result<String, ResolverError> {
        let Self { before, after, .. } = self;
        let name = match self.width {
            Some(width) => format!("{before}{number:0width$}{after}"),
            None => format!("{before}{after}"),
        };
        match self.rule.problem(&name) {
            None => Ok(name),
            Some(rule) => Err(ResolverError::NameRule {
                name,
                resource_type: self.resource_type.clone(),
                rule,
                owner: self.owner.clone(),
            }),
        }
    }

    pub fn outputs(&self, name: &str) -> Map<String, Value> {
        let fqdn = match &self.domain {
            Some(domain) => format!("{name}.{domain}"),
            None => name.to_owned(),
        };
        Map::from_iter([
            ("name".to_owned(), name.into()),
            ("fqdn".to_owned(), fqdn.into()),
        ])
    }

    /// That a name, or every number of its sequence, is taken.
    pub fn taken(&self, number: Option<u32>, holder: &str) -> ResolverError {
        let name = self.name(number.unwrap_or(1));
        ResolverError::NameTaken {
            name: name.unwrap_or_else(|_| format!("{}{}", self.before, self.after)),
            resource_type: self.resource_type.clone(),
            holder: holder.to_owned(),
        }
    }
}

/// A number of a sequence as the block that stands for it.
pub fn number_block(number: u32) -> AddressBlock {
    AddressBlock::new(AddressFamily::V4, u128::from(number), 32)
        .expect("every number is a single address")
}

/// The number that a block of a sequence stands for.
pub fn block_number(block: AddressBlock) -> u32 {
    // Sequences are made of IPv4 blocks alone.
    block.base() as u32
}

/// Small letters and digits, with one `-` for everything else.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

#[cfg(test)]
mod tests;
