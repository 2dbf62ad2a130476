//! Who is told in person that a run waits for them, or what became of the run that they asked for.
//!
//! Whoever may decide on the step that is waited for is asked when the request gets there, and once more when the time was
//! over and others may decide as well; whoever asked for the run is told the end. All of it is in the transaction of the
//! move that it tells.

use nimbus_approvals::{ApprovalChain, ApprovalProgress, ApprovalState, Approver};
use nimbus_control_events::{NewEvent, kind};
use nimbus_control_store::{
    NewNotification, NotifiedPeople, StoredApproval, TenantTx, Timestamp as StoredTime,
};
use uuid::Uuid;

use crate::approvals::approval_data;
use crate::failure::Result;

/// Tells those in person whom a request that was at `before` concerns now.
pub(crate) async fn notify_of_approval(
    tx: &mut TenantTx,
    request: &StoredApproval,
    chain: &ApprovalChain,
    before: Option<&ApprovalState>,
    next: &ApprovalProgress,
) -> Result<()> {
    if asks_anew(before, &next.state) {
        ask_approvers(tx, request, chain, next).await
    } else {
        tell_requester(tx, request, &next.state).await
    }
}

/// Whether people have to be asked who were not, or may have forgotten. One of several who agreed changes nothing for the
/// others.
fn asks_anew(before: Option<&ApprovalState>, next: &ApprovalState) -> bool {
    let step = |state: &ApprovalState| match state {
        ApprovalState::Pending {
            step, escalated, ..
        } => Some((*step, *escalated)),
        ApprovalState::Approved { .. }
        | ApprovalState::Rejected { .. }
        | ApprovalState::Expired { .. }
        | ApprovalState::Withdrawn { .. } => None,
    };
    step(next).is_some_and(|now| before.and_then(step) != Some(now))
}

async fn ask_approvers(
    tx: &mut TenantTx,
    request: &StoredApproval,
    chain: &ApprovalChain,
    progress: &ApprovalProgress,
) -> Result<()> {
    let ApprovalState::Pending {
        step: place,
        escalated,
        since,
    } = &progress.state
    else {
        return Ok(());
    };
    let Some(step) = chain.steps.get(*place) else {
        return Ok(());
    };
    // Whoever asked knows, and whoever has decided on the step cannot do so again.
    let mut to = NotifiedPeople {
        delegates_at: Some(StoredTime(*since)),
        except: vec![request.requested_by],
        ..NotifiedPeople::default()
    };
    for decision in progress.decisions.iter().filter(|one| one.step == *place) {
        to.except.push(decision.by.into());
        to.except.extend(decision.for_user.map(Uuid::from));
    }
    for approver in step.approvers(*escalated) {
        match approver {
            Approver::User(user) => to.users.push(user.into()),
            Approver::Group(group) => to.groups.push(group),
        }
    }
    let until = progress
        .deadline(chain)
        .map(|time| format!(", until {time}"));
    let late = match escalated {
        true => " The first time is over, and others may decide as well.",
        false => "",
    };
    let new = NewNotification {
        kind: "approval_required",
        title: format!("{} waits for your decision", asked_for(request)),
        body: format!(
            "It is at step {}{}.{late}",
            step.name,
            until.unwrap_or_default()
        ),
        ..about(request)
    };
    let told = tx.notify(&new, &to).await?;
    // Not in the rooms of the run and its deployment: there it is told once, for all.
    let event = |person: Uuid| {
        NewEvent::new(kind::APPROVAL_REQUIRED, request.id, approval_data(request))
            .in_environment(&request.environment)
            .of_person(Some(person))
    };
    let events: Vec<NewEvent> = told.into_iter().map(event).collect();
    Ok(tx.live_publish(&events).await?)
}

async fn tell_requester(
    tx: &mut TenantTx,
    request: &StoredApproval,
    state: &ApprovalState,
) -> Result<()> {
    let (words, body) = match state {
        ApprovalState::Pending { .. } => return Ok(()),
        ApprovalState::Approved { .. } => ("was approved", "It goes on.".to_owned()),
        ApprovalState::Rejected { reason, .. } => ("was denied", reason.clone()),
        ApprovalState::Expired { .. } => ("expired", "Nobody decided in time.".to_owned()),
        // They know what they did themselves.
        ApprovalState::Withdrawn { by, .. } if Uuid::from(*by) == request.requested_by => {
            return Ok(());
        }
        ApprovalState::Withdrawn { .. } => {
            ("was withdrawn", "Somebody cancelled the run.".to_owned())
        }
    };
    let new = NewNotification {
        kind: "approval_completed",
        title: format!("{} {words}", asked_for(request)),
        body,
        ..about(request)
    };
    let to = NotifiedPeople {
        users: vec![request.requested_by],
        ..NotifiedPeople::default()
    };
    tx.notify(&new, &to).await?;
    Ok(())
}

/// What was asked for, as titles begin.
fn asked_for(request: &StoredApproval) -> String {
    format!(
        "{} R{:04}: the {} in {}",
        request.deployment, request.run_number, request.action, request.environment
    )
}

/// A notification about a request that says nothing yet.
fn about(request: &StoredApproval) -> NewNotification {
    NewNotification {
        kind: "",
        title: String::new(),
        body: String::new(),
        approval: Some(request.id),
        run: Some(request.run),
        deployment: Some(request.deployment.clone()),
        environment: Some(request.environment.clone()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn pending(step: usize, escalated: bool) -> ApprovalState {
        ApprovalState::Pending {
            step,
            escalated,
            since: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn people_are_asked_when_a_step_begins_or_escalates_and_not_for_each_vote() {
        let ended = ApprovalState::Approved {
            at: Timestamp::UNIX_EPOCH,
        };
        assert!(asks_anew(None, &pending(0, false)));
        assert!(asks_anew(Some(&pending(0, true)), &pending(1, false)));
        assert!(asks_anew(Some(&pending(0, false)), &pending(0, true)));
        assert!(!asks_anew(Some(&pending(0, false)), &pending(0, false)));
        assert!(!asks_anew(Some(&pending(0, false)), &ended));
    }
}
