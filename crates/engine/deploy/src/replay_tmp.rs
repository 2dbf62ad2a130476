//! Rebuilds a snapshot from journal entries until the model crate does.

use nimbus_engine_model::*;
use std::sync::Arc;
pub(crate) fn replay(base: &Snapshot, entries: &[JournalEntry]) -> Result<Snapshot, String> {
    let mut base_list: Vec<Option<Arc<ResourceState>>> =
        base.resources.iter().cloned().map(Some).collect();
    let mut news: Vec<(ActId, Option<Arc<ResourceState>>)> = Vec::new();
    let mut pending: Vec<(ActId, Operation)> = Vec::new();
    let mut base_pending = base.pending_operations.clone();
    for entry in entries {
        match entry {
            JournalEntry::Begin { act, operation } => pending.push((*act, operation.clone())),
            JournalEntry::Unknown { .. } => {}
            JournalEntry::ClearPending => base_pending.clear(),
            JournalEntry::Rebase { resources } => {
                base_list = resources.iter().cloned().map(Some).collect();
                news.clear();
            }
            JournalEntry::Success { act, change } | JournalEntry::Failure { act, change } => {
                pending.retain(|(a, _)| a != act);
                let mut placed = false;
                match change.remove {
                    Some(StateRef::Base(i)) => base_list[i] = None,
                    Some(StateRef::New(a)) => {
                        let slot = news
                            .iter_mut()
                            .find(|(x, _)| *x == a)
                            .ok_or("no such act")?;
                        if let Some(s) = &change.state {
                            *slot = (*act, Some(Arc::clone(s)));
                            placed = true;
                        } else {
                            slot.1 = None;
                        }
                    }
                    None => {}
                }
                let mut mark = |r: StateRef, f: &dyn Fn(&mut ResourceState)| {
                    let slot = match r {
                        StateRef::Base(i) => &mut base_list[i],
                        StateRef::New(a) => &mut news.iter_mut().find(|(x, _)| *x == a).unwrap().1,
                    };
                    if let Some(s) = slot {
                        let mut c = ResourceState::clone(s);
                        f(&mut c);
                        *slot = Some(Arc::new(c));
                    }
                };
                if let Some(r) = change.mark_delete {
                    mark(r, &|s| s.delete = true);
                }
                if let Some(r) = change.mark_pending_replacement {
                    mark(r, &|s| s.pending_replacement = true);
                }
                if let (Some(s), false) = (&change.state, placed) {
                    news.push((*act, Some(Arc::clone(s))));
                }
            }
        }
    }
    let mut resources: Vec<Arc<ResourceState>> = news
        .into_iter()
        .filter_map(|(_, s)| s)
        .chain(base_list.into_iter().flatten())
        .collect();
    let aliases: std::collections::HashMap<Urn, Urn> = resources
        .iter()
        .flat_map(|r| r.aliases.iter().map(|a| (a.clone(), r.urn.clone())))
        .collect();
    let fix = |u: &Urn| aliases.get(u).cloned().unwrap_or_else(|| u.clone());
    for r in &mut resources {
        let mut c = ResourceState::clone(r);
        c.parent = c.parent.as_ref().map(&fix);
        c.dependencies = c.dependencies.iter().map(&fix).collect();
        c.aliases.clear();
        for v in c.property_dependencies.values_mut() {
            *v = v.iter().map(&fix).collect();
        }
        if let Ok(p) = ProviderRef::parse(&c.provider) {
            c.provider = ProviderRef {
                urn: fix(&p.urn),
                id: p.id,
            }
            .to_string();
        }
        *r = Arc::new(c);
    }
    base_pending.extend(pending.into_iter().map(|(_, o)| o));
    Ok(Snapshot {
        resources,
        pending_operations: base_pending,
        ..base.clone()
    })
}
