//! Reading objects that the stack does not manage.

use nimbus_engine_model::provider_package;
use nimbus_engine_ports::{ReadGoal, RegisterStatus};

use crate::error::{Ending, MonitorError};
use crate::monitor::{Monitor, parse_provider};
use crate::packages::{PluginHints, check_recordable, check_type, package_of};
use crate::requests::{ReadCall, ReadDone};
use crate::tracker::Existence;

impl Monitor {
    pub async fn read(&self, call: ReadCall) -> Result<ReadDone, Ending> {
        let subject = self.presumed_urn(call.parent.as_ref(), &call.type_, &call.name);
        self.or_abort(Some(subject), self.read_unguarded(call))
            .await
    }

    async fn read_unguarded(&self, call: ReadCall) -> Result<ReadDone, MonitorError> {
        check_type(&call.type_)?;
        check_recordable(&call.type_, &call.name)?;
        self.refuse_foreign_files(&call.properties).await?;
        let provider = self.read_provider(&call).await?;
        if self.packages.extension(&call.package_reference).is_some() {
            let provider = parse_provider(&provider)?;
            self.extended_provider(&provider, &call.package_reference)
                .await?;
        }
        let origin = self.positions.origin(&call.origin);
        let parent = call.parent.clone();
        let goal = ReadGoal {
            type_: call.type_,
            name: call.name,
            id: call.id,
            parent: call.parent,
            properties: call.properties,
            dependencies: call.dependencies,
            provider,
            additional_secret_outputs: call.additional_secret_outputs,
            source_position: origin.position,
            stack_trace: origin.stack_trace,
        };
        let result = self.ports.registrar.read(goal).await?;
        if result.status != RegisterStatus::Succeeded {
            // An SDK cannot be told that a read failed; the deployment has said why it did.
            return Err(MonitorError::Ending);
        }
        let existence = Existence::Exists;
        self.tracker.record(&result.urn, parent.as_ref(), existence);
        Ok(ReadDone {
            urn: result.urn,
            outputs: result.outputs,
        })
    }

    async fn read_provider(&self, call: &ReadCall) -> Result<String, MonitorError> {
        if provider_package(&call.type_).is_some() || !call.provider.is_empty() {
            return Ok(call.provider.clone());
        }
        let hints = PluginHints {
            version: &call.version,
            download_url: &call.plugin_download_url,
            checksums: &call.plugin_checksums,
        };
        let package =
            self.packages
                .of_request(package_of(&call.type_), hints, &call.package_reference)?;
        let reference = self.provider_reference("", package, &call.type_).await?;
        Ok(reference.to_string())
    }
}
