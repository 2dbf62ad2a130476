//! Functions of providers.

use nimbus_engine_ports::InvokeRequest;

use crate::error::{Ending, MonitorError};
use crate::monitor::Monitor;
use crate::packages::{PluginHints, package_of};
use crate::requests::{InvokeCall, Invoked};

/// Why an invoke has no answer. Programs may catch the second and go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvokeError {
    #[error(transparent)]
    Ending(#[from] Ending),
    #[error(transparent)]
    Failed(MonitorError),
}

impl Monitor {
    pub async fn invoke(&self, call: InvokeCall) -> Result<Invoked, InvokeError> {
        match self
            .lifecycle
            .unless_ending(self.invoke_unguarded(call))
            .await?
        {
            Ok(answer) => Ok(answer),
            Err(MonitorError::Ending) => Err(InvokeError::Ending(self.lifecycle.abort())),
            Err(error) => Err(InvokeError::Failed(error)),
        }
    }

    async fn invoke_unguarded(&self, call: InvokeCall) -> Result<Invoked, MonitorError> {
        let InvokeCall {
            token,
            mut args,
            mut options,
            package_reference,
            parent,
            depends_on,
        } = call;
        options.provider = self.inheritance.choose_provider(
            &options.provider,
            &Default::default(),
            parent.as_ref(),
            package_of(&token),
        );
        for transform in self.invoke_transforms() {
            (args, options) = transform.transform(&token, args, options).await?;
        }
        self.refuse_foreign_files(&args).await?;
        let hints = PluginHints {
            version: &options.version,
            download_url: &options.plugin_download_url,
            checksums: &options.plugin_checksums,
        };
        let package = self
            .packages
            .of_request(package_of(&token), hints, &package_reference)?;
        let reference = self
            .provider_reference(&options.provider, package, &token)
            .await?;
        let provider = self.extended_provider(&reference, &package_reference);
        let provider = provider.await?;
        if !depends_on.is_empty() && self.tracker.any_planned(&depends_on).await {
            return Ok(Invoked::Unknown);
        }
        let request = InvokeRequest {
            token: token.clone(),
            args: crate::outputs::flatten(args),
            preview: self.settings.context.dry_run,
        };
        let answer = provider.invoke(request).await;
        let answer = answer.map_err(|error| MonitorError::Provider {
            token,
            message: error.to_string(),
        })?;
        Ok(Invoked::Answered {
            properties: answer.properties,
            failures: answer.failures,
        })
    }
}
