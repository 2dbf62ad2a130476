//! Earlier names of resources.
//!
//! A resource is found in the record by its URN, else by the first of its aliases that the record
//! has. Aliases of a parent carry over to its children, whose names may contain the parent's.

use std::collections::{HashMap, HashSet};

use nimbus_engine_model::{Alias, AliasParent, AliasSpec, ROOT_STACK_TYPE, Urn};
use nimbus_engine_ports::Severity;

use super::Generator;
use crate::known::RecordedResource;

/// Which recorded name became which.
#[derive(Default)]
pub(super) struct Names {
    /// Recorded name to present name.
    pub(super) taken: HashMap<Urn, Urn>,
    /// Present name to recorded name.
    recorded: HashMap<Urn, Urn>,
}

/// What the record has for a resource.
pub(super) struct RecordedMatch {
    pub old: Option<RecordedResource>,
    /// The earlier name under which it was found.
    pub alias: Option<Urn>,
    /// Somebody else claims the same record.
    pub conflict: bool,
}

/// What identifies a resource beside its aliases.
pub(super) struct ResourceIdentity<'a> {
    pub urn: &'a Urn,
    pub type_: &'a str,
    pub name: &'a str,
    pub parent: Option<&'a Urn>,
}

impl Generator {
    pub(super) fn find_old(
        &mut self,
        identity: &ResourceIdentity<'_>,
        aliases: &[Alias],
    ) -> RecordedMatch {
        let urn = identity.urn;
        let mut conflict = false;
        if let Some(other) = self.names.taken.get(urn).cloned() {
            conflict = true;
            let message = format!("{other} claims to be {urn}, which is registered as well");
            self.report(Severity::Error, Some(urn), message);
        }
        // The own name before any alias: a program may keep an alias for ever, also when something
        // else has come to be recorded under it.
        if let Some(old) = self.base.live(urn) {
            return RecordedMatch {
                old: Some(old),
                alias: None,
                conflict,
            };
        }
        let candidates = self.alias_urns(identity, aliases);
        let matched = candidates
            .into_iter()
            .find_map(|alias| Some((self.base.live(&alias)?, alias)));
        let Some((old, alias)) = matched else {
            return RecordedMatch {
                old: None,
                alias: None,
                conflict,
            };
        };
        conflict |= self.claim(urn, &alias);
        RecordedMatch {
            old: Some(old),
            alias: Some(alias),
            conflict,
        }
    }

    /// Takes a recorded name; whether somebody else has it already. Two resources that go on with
    /// one record would both own its object. The claim is told here and refused after the check,
    /// together with whatever else is wrong with the resource.
    fn claim(&mut self, urn: &Urn, alias: &Urn) -> bool {
        let registered = self.seen.registered.contains(alias).then(|| alias.clone());
        let holder = registered.or_else(|| self.names.taken.get(alias).cloned());
        if let Some(holder) = &holder {
            let message = format!("{urn} claims to be {alias}, which is {holder} already");
            self.report(Severity::Error, Some(urn), message);
        }
        self.names.taken.insert(alias.clone(), urn.clone());
        self.names.recorded.insert(urn.clone(), alias.clone());
        holder.is_some()
    }

    /// Every earlier URN, in the order in which they are tried.
    fn alias_urns(&self, identity: &ResourceIdentity<'_>, aliases: &[Alias]) -> Vec<Urn> {
        let own: Vec<Urn> = aliases
            .iter()
            .map(|alias| self.alias_urn(identity, alias))
            .collect();
        let mut all = Vec::new();
        let mut known = HashSet::new();
        let mut add = |urn: Urn| {
            if known.insert(urn.clone()) {
                all.push(urn);
            }
        };
        own.iter().cloned().for_each(&mut add);
        let inherited = identity.parent.and_then(|parent| {
            self.names
                .recorded
                .get(parent)
                .map(|recorded| (parent, recorded))
        });
        if let Some((parent, recorded)) = inherited {
            add(self.inherited(identity.type_, identity.name, parent, recorded));
            for alias in &own {
                add(self.inherited(alias.type_(), alias.name(), parent, recorded));
            }
        }
        all
    }

    fn alias_urn(&self, identity: &ResourceIdentity<'_>, alias: &Alias) -> Urn {
        let spec = match alias {
            Alias::Urn(urn) => return urn.clone(),
            Alias::Spec(spec) => spec,
        };
        let parent = self.alias_parent(identity, spec);
        let parent_type = parent
            .map(|parent| parent.qualified_type())
            .filter(|type_| *type_ != ROOT_STACK_TYPE);
        Urn::new(
            spec.stack.as_deref().unwrap_or(&self.stack),
            spec.project.as_deref().unwrap_or(&self.project),
            parent_type,
            spec.type_.as_deref().unwrap_or(identity.type_),
            spec.name.as_deref().unwrap_or(identity.name),
        )
    }

    /// If the named parent was renamed itself, its earlier name is part of this one's.
    fn alias_parent<'a>(
        &'a self,
        identity: &ResourceIdentity<'a>,
        spec: &'a AliasSpec,
    ) -> Option<&'a Urn> {
        match &spec.parent {
            AliasParent::Same => identity.parent,
            AliasParent::None => None,
            AliasParent::Urn(parent) => Some(self.names.recorded.get(parent).unwrap_or(parent)),
        }
    }

    /// A child's earlier URN under its parent's earlier URN. Where the child's name begins with the
    /// parent's, it began with the parent's earlier name.
    fn inherited(&self, type_: &str, name: &str, parent: &Urn, recorded: &Urn) -> Urn {
        let name = match name.strip_prefix(parent.name()) {
            Some(rest) => format!("{}{rest}", recorded.name()),
            None => name.to_owned(),
        };
        Urn::new(
            &self.stack,
            &self.project,
            Some(recorded.qualified_type()),
            type_,
            &name,
        )
    }
}
