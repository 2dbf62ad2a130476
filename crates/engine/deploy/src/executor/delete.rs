//! Deleting a resource.

use nimbus_engine_model::{
    HookKind, JournalChange, OperationKind, ResourceState, provider_package,
};
use nimbus_engine_ports::DeleteRequest;

use super::create::timeout;
use super::hooks::Views;
use super::{Executor, ProviderAnswer, StepError, known_or_unknown};
use crate::steps::{DeleteReason, DeleteStep};

impl Executor {
    pub(super) async fn delete(&self, step: &DeleteStep) -> Result<(), StepError> {
        let old = &*step.old().state;
        // Whether a protected resource may be replaced was decided with the replacement.
        let unwanted = step.reason() == DeleteReason::Unwanted;
        if unwanted && old.protect && !self.rules.ignore_protect {
            return Err(StepError::Protected {
                message: format!("{} is protected and cannot be deleted", old.urn),
            });
        }
        let views = Views {
            old: Some(old),
            new: None,
            new_outputs: None,
        };
        self.run_before(HookKind::BeforeDelete, views).await?;
        if !self.rules.dry_run && step.needs_provider() {
            self.delete_object(step).await?;
        } else {
            self.record(None, forget(step)).await?;
        }
        self.run_after(HookKind::AfterDelete, views).await;
        Ok(())
    }

    async fn delete_object(&self, step: &DeleteStep) -> Result<(), StepError> {
        let old = &step.old().state;
        if provider_package(&old.type_).is_some() {
            // The record first: a process ends with us anyway, and needs no intent.
            self.record(None, forget(step)).await?;
            self.registry
                .delete(&old.urn, old.id.as_deref().unwrap_or_default())
                .await;
            return Ok(());
        }
        let provider = self.provider(old).await?;
        let request = delete_request(old);
        let act = self.begin(OperationKind::Deleting, old).await?;
        let views = Views {
            old: Some(old),
            new: None,
            new_outputs: None,
        };
        let call = || provider.delete(request.clone());
        let answer = match self.with_retries(views, call, |_| true).await {
            Ok(()) => ProviderAnswer::Done(()),
            Err(error) => known_or_unknown(error),
        };
        let state = std::sync::Arc::clone(old);
        self.conclude(act, answer, |()| (forget(step), state))
            .await
            .map(|_| ())
    }
}

/// The record goes, unless it must remember that a replacement is due.
fn forget(step: &DeleteStep) -> JournalChange {
    let key = Some(step.old().key);
    match step.reason() {
        DeleteReason::BeforeReplacement => JournalChange {
            mark_pending_replacement: key,
            ..JournalChange::default()
        },
        DeleteReason::Unwanted | DeleteReason::Replaced => JournalChange {
            remove: key,
            ..JournalChange::default()
        },
    }
}

fn delete_request(old: &ResourceState) -> DeleteRequest {
    DeleteRequest {
        urn: Some(old.urn.clone()),
        name: old.urn.name().to_owned(),
        type_: old.type_.clone(),
        id: old.id.clone().unwrap_or_default(),
        inputs: old.inputs.clone(),
        outputs: old.outputs.clone(),
        timeout: timeout(old.custom_timeouts.delete),
    }
}
