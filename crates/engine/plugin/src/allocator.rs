//! Where an operation gets its processes: from its own pool, or from the one that it shares.

use std::path::PathBuf;
use std::sync::Arc;

use nimbus_engine_model::{PackageDescriptor, PropertyMap, Urn};
use nimbus_engine_ports::ProviderError;
use nimbus_engine_proto::Message as _;
use nimbus_engine_wire::{Accept, UnknownEncoding, encode};

use crate::error::PluginError;
use crate::folder;
use crate::options::{HostOptions, PluginTimeouts};
use crate::pool::{Configuring, KeyDigest, PoolUser, ProcessLease, ProviderPool};
use crate::sharing::SharingReach;
use crate::start::StartPlan;

pub(crate) struct ProcessAllocator {
    options: HostOptions,
    own: Arc<ProviderPool>,
    user: Arc<PoolUser>,
}

/// A configuration, and the provider resource that it is for.
pub(crate) struct Configuration<'a> {
    pub(crate) urn: Option<&'a Urn>,
    pub(crate) name: &'a str,
    pub(crate) id: Option<&'a str>,
    pub(crate) type_: &'a str,
    pub(crate) inputs: &'a PropertyMap,
}

impl ProcessAllocator {
    pub(crate) fn new(options: HostOptions) -> Self {
        let address = options.engine_address.clone();
        Self {
            own: ProviderPool::of_operation(options.limits, address),
            user: Arc::new(PoolUser::new(Arc::clone(&options.events))),
            options,
        }
    }

    pub(crate) fn options(&self) -> &HostOptions {
        &self.options
    }

    pub(crate) fn limits(&self) -> PluginTimeouts {
        self.options.limits
    }

    pub(crate) fn plan(&self, package: &PackageDescriptor) -> Result<StartPlan, PluginError> {
        StartPlan::new(&self.options, package, SharingReach::Everywhere)
    }

    /// The plan for a process that is given these values: one that runs in the folder if they
    /// could name something there.
    pub(crate) fn plan_for(
        &self,
        plan: &StartPlan,
        package: &PackageDescriptor,
        inputs: &PropertyMap,
    ) -> Result<StartPlan, PluginError> {
        if plan.reach() == SharingReach::Everywhere && self.names_folder(inputs) {
            return self.plan_in_folder(package);
        }
        Ok(plan.clone())
    }

    pub(crate) fn plan_in_folder(
        &self,
        package: &PackageDescriptor,
    ) -> Result<StartPlan, PluginError> {
        StartPlan::new(&self.options, package, SharingReach::Folder)
    }

    pub(crate) fn names_folder(&self, inputs: &PropertyMap) -> bool {
        folder::names_something(&self.options.directory, inputs)
    }

    /// The folder to which paths are relative, for a process that runs elsewhere.
    pub(crate) fn folder_for(&self, plan: &StartPlan) -> Option<PathBuf> {
        plan.runs_elsewhere()
            .then(|| self.options.directory.clone())
    }

    /// Any process of the package, to see that there can be one.
    pub(crate) fn any(&self, plan: &StartPlan) -> Result<ProcessLease, PluginError> {
        let pool = self.pool(plan);
        pool.any(plan, self.launch(plan), &self.user)
    }

    pub(crate) fn to_check(
        &self,
        plan: &StartPlan,
        configuration: &Configuration<'_>,
    ) -> Result<ProcessLease, ProviderError> {
        refuse_inputs(plan, configuration)?;
        let launch = self.launch(plan);
        let digest = self.digest(plan, launch, "check", configuration)?;
        let lease = self.pool(plan).to_check(plan, launch, digest, &self.user);
        lease.map_err(|error| failed(&error))
    }

    pub(crate) fn to_configure(
        &self,
        plan: &StartPlan,
        configuration: &Configuration<'_>,
        held: Option<&ProcessLease>,
        configure: impl FnOnce(crate::pool::Starting) -> Configuring,
    ) -> Result<(ProcessLease, Configuring), ProviderError> {
        refuse_inputs(plan, configuration)?;
        let launch = self.launch(plan);
        let digest = self.digest(plan, launch, "configure", configuration)?;
        let pool = self.pool(plan);
        pool.to_configure(plan, (launch, digest), held, &self.user, configure)
            .map_err(|error| failed(&error))
    }

    /// Ends every process of this operation alone. Nothing can be loaded afterwards; what is shared
    /// is given back as its providers go.
    pub(crate) async fn close(&self) {
        self.own.close().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.own.is_closed()
    }

    fn pool(&self, plan: &StartPlan) -> &Arc<ProviderPool> {
        match (&self.options.shared, plan.reach()) {
            (Some(shared), SharingReach::Folder | SharingReach::Everywhere) => &shared.pool,
            (None, _) | (_, SharingReach::Operation) => &self.own,
        }
    }

    fn launch(&self, plan: &StartPlan) -> KeyDigest {
        let owner = self.options.shared.as_ref().map(|shared| &shared.owner);
        let owner = owner.map_or("", String::as_str);
        plan.digest(self.pool(plan).fields(), owner)
    }

    /// Everything that makes a configuration what it is. Who shares a process everywhere is not
    /// told which provider resource it is, so that does not count.
    fn digest(
        &self,
        plan: &StartPlan,
        launch: KeyDigest,
        purpose: &str,
        configuration: &Configuration<'_>,
    ) -> Result<KeyDigest, ProviderError> {
        let mut fields = self.pool(plan).fields();
        fields.add(launch).add(purpose).add(configuration.type_);
        if plan.reach() != SharingReach::Everywhere {
            fields.add_optional(configuration.urn.map(Urn::to_string));
            fields.add(configuration.name);
            fields.add_optional(configuration.id);
        }
        let everything = Accept {
            unknowns: UnknownEncoding::Keep,
            secrets: true,
            resources: true,
            outputs: true,
            byte_strings: true,
            ..Accept::default()
        };
        let inputs = encode(configuration.inputs, everything);
        let inputs = inputs.map_err(|error| ProviderError::failed(error.to_string()))?;
        fields.add(inputs.encode_to_vec());
        let directory = &self.options.directory;
        folder::texts(configuration.inputs, &mut |text| {
            fields.add_named_file(&directory.join(text));
        });
        Ok(fields.digest())
    }
}

fn refuse_inputs(plan: &StartPlan, configuration: &Configuration<'_>) -> Result<(), ProviderError> {
    match plan.refuses_inputs(configuration.inputs) {
        Some(message) => Err(ProviderError::failed(message)),
        None => Ok(()),
    }
}

pub(crate) fn failed(error: &PluginError) -> ProviderError {
    ProviderError::failed(error.to_string())
}
