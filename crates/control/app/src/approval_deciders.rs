//! Who somebody is when they decide: themselves, one of their groups, and whoever they decide in the place of.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_approvals::{ApprovalProgress, ApprovalVerdict, Decider, Delegator};
use nimbus_control_auth::access::Resource;
use nimbus_control_store::{StoreError, TenantTx};
use nimbus_core::UserId;

use crate::app::App;
use crate::approvals::{ApprovalEntry, core_decision, read};
use crate::call::Call;
use crate::failure::Result;

/// What somebody needs who decides in another's place, and that other as well.
const DECIDE: &str = "approval:request:decide";

impl App {
    /// The caller as one who decides: their groups, and in whose place they may. Somebody who was disabled, or may no
    /// longer decide, has no place that another could take.
    pub(crate) async fn decider(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        resource: &Resource,
    ) -> Result<Decider> {
        let user = call.who.user;
        let mut delegators = Vec::new();
        let at = nimbus_control_store::Timestamp(call.context.now);
        for person in tx.delegators_of(user, at).await? {
            let person = UserId::from(person);
            match tx.user_get(person).await {
                Err(StoreError::NotFound(_)) => continue,
                found => {
                    if found?.disabled_at.is_some() {
                        continue;
                    }
                }
            }
            let caller = self.caller_of(tx, person, None, None).await?;
            let circumstances = call.context.circumstances();
            let engine = &self.inner.engine;
            if engine
                .decide(&caller, DECIDE, resource, &circumstances)
                .allowed
            {
                delegators.push(Delegator {
                    user: person,
                    groups: tx.groups_of(person).await?,
                });
            }
        }
        Ok(Decider {
            user,
            groups: tx.groups_of(user).await?,
            delegators,
        })
    }

    /// Says of each request whether a decision of the caller would count now. What the plan was made from may have moved
    /// all the same, which is found out when they decide.
    pub(crate) async fn mark_own(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        resource: &Resource,
        entries: &mut [ApprovalEntry],
    ) -> Result<()> {
        // Once for each environment: a page has many requests of few of them.
        let environments: BTreeSet<String> = entries
            .iter()
            .filter(|entry| entry.request.status == "pending")
            .map(|entry| entry.request.environment.clone())
            .collect();
        let mut deciders = BTreeMap::new();
        for environment in environments {
            let mut place = resource.clone();
            place.environment = Some(environment.clone());
            if self.has(call, DECIDE, &place) {
                let decider = self.decider(tx, call, &place).await?;
                deciders.insert(environment, decider);
            }
        }
        for entry in entries {
            let request = &entry.request;
            let Some(decider) = deciders.get(&request.environment) else {
                continue;
            };
            let progress = ApprovalProgress {
                state: read(&request.state)?,
                decisions: entry.decisions.iter().cloned().map(core_decision).collect(),
            };
            let requester = UserId::from(request.requested_by);
            let (verdict, now) = (ApprovalVerdict::Approve, call.context.now);
            let chain = read(&request.chain)?;
            let decided = progress.decide(&chain, requester, decider, verdict, "", now);
            entry.yours = decided.is_ok();
        }
        Ok(())
    }
}
