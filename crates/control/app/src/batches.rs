//! Several things of a kind at once, for whoever shows lists of things that name others. One question about access, one
//! statement and one record for all of them, however many there are.

use std::collections::HashMap;
use std::hash::Hash;

use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation;
use nimbus_control_store::{Group, StoredDeployment, StoredRun, Tenant, User};
use nimbus_core::TenantId;
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::environments::DeploymentEnvironment;
use crate::failure::{Failure, Result};

impl App {
    /// Users of a tenant by their ids. Those that it does not have are left out.
    pub async fn users_by_id(
        &self,
        call: &Call,
        tenant: TenantId,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, User>> {
        let permit = self.permit(call, operation::LIST_USERS, tenant).await?;
        let found = self.inner.store.tenant_tx(tenant, async |tx| {
            let found = tx.users_named(ids).await?;
            self.audit(tx, &call.context, permit.record()).await?;
            Ok::<_, Failure>(found)
        });
        Ok(by(found.await?, |user| user.id))
    }

    /// Groups of a tenant by their ids.
    pub async fn groups_by_id(
        &self,
        call: &Call,
        tenant: TenantId,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Group>> {
        let permit = self.permit(call, operation::LIST_GROUPS, tenant).await?;
        let found = self.inner.store.tenant_tx(tenant, async |tx| {
            let found = tx.groups_named(ids).await?;
            self.audit(tx, &call.context, permit.record()).await?;
            Ok::<_, Failure>(found)
        });
        Ok(by(found.await?, |group| group.id))
    }

    /// The first members of each group.
    pub async fn members_of_groups(
        &self,
        call: &Call,
        tenant: TenantId,
        groups: &[Uuid],
        limit: u32,
    ) -> Result<HashMap<Uuid, Vec<User>>> {
        let permit = self.permit(call, operation::LIST_MEMBERS, tenant).await?;
        let found = self.inner.store.tenant_tx(tenant, async |tx| {
            let found = tx.members_of_each(groups, limit).await?;
            self.audit(tx, &call.context, permit.record()).await?;
            Ok::<_, Failure>(found)
        });
        let mut members: HashMap<Uuid, Vec<User>> = HashMap::new();
        for (group, user) in found.await? {
            members.entry(group).or_default().push(user);
        }
        Ok(members)
    }

    /// Deployments of a tenant by their ids.
    pub async fn deployments_by_id(
        &self,
        call: &Call,
        tenant: TenantId,
        ids: &[String],
    ) -> Result<HashMap<String, StoredDeployment>> {
        let permit = self
            .permit(call, operation::LIST_DEPLOYMENTS, tenant)
            .await?;
        let found = self.inner.store.tenant_tx(tenant, async |tx| {
            let found = tx.deployments_named(ids).await?;
            self.audit(tx, &call.context, permit.record()).await?;
            Ok::<_, Failure>(found)
        });
        Ok(by(found.await?, |deployment| deployment.id.clone()))
    }

    /// The newest runs of each deployment.
    pub async fn runs_of_deployments(
        &self,
        call: &Call,
        tenant: TenantId,
        deployments: &[String],
        limit: u32,
    ) -> Result<HashMap<String, Vec<StoredRun>>> {
        let permit = self.permit(call, operation::LIST_RUNS, tenant).await?;
        let found = self.inner.store.tenant_tx(tenant, async |tx| {
            let found = tx.runs_of_each(deployments, limit).await?;
            self.audit(tx, &call.context, permit.record()).await?;
            Ok::<_, Failure>(found)
        });
        Ok(groups_of(found.await?, |run| run.deployment.clone()))
    }

    /// The environments of each deployment in the order of promotion, with the newest run of each. A manifest that cannot
    /// be read has none that could be shown.
    pub async fn environments_of_deployments(
        &self,
        call: &Call,
        tenant: TenantId,
        deployments: &[String],
    ) -> Result<HashMap<String, Vec<DeploymentEnvironment>>> {
        let operation = operation::LIST_ENVIRONMENTS;
        let permit = self.permit(call, operation, tenant).await?;
        let found = self.inner.store.tenant_tx(tenant, async |tx| {
            let rows = tx.deployments_named(deployments).await?;
            let runs = tx.newest_of_environments(deployments).await?;
            self.audit(tx, &call.context, permit.record()).await?;
            Ok::<_, Failure>((rows, runs))
        });
        let (rows, runs) = found.await?;
        let mut newest = by(runs, |run| {
            (run.deployment.clone(), run.environment.clone())
        });
        let described = rows.into_iter().map(|row| {
            let manifest = read_manifest(&row.manifest).ok();
            let environments = manifest
                .into_iter()
                .flat_map(|manifest| manifest.environments);
            let environments = environments.map(|(name, target)| DeploymentEnvironment {
                last_run: newest.remove(&(row.id.clone(), name.to_string())),
                name,
                enabled: target.enabled,
                account: target.account.unwrap_or_default(),
                region: target.region,
                version: None,
                locked_by: None,
                stacks: Vec::new(),
            });
            (row.id.clone(), environments.collect())
        });
        Ok(described.collect())
    }

    /// Tenants by their ids: those of them that the caller may see.
    pub async fn tenants_by_id(
        &self,
        call: &Call,
        ids: &[TenantId],
    ) -> Result<HashMap<TenantId, Tenant>> {
        self.note_read(call, operation::LIST_TENANTS).await?;
        let found = self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.tenants_named(ids).await);
        let mut found = found.await?;
        found.retain(|tenant| self.sees(call, tenant));
        Ok(by(found, |tenant| tenant.id))
    }

    /// The first children of each tenant that the caller may see.
    pub async fn children_of_tenants(
        &self,
        call: &Call,
        parents: &[TenantId],
        limit: u32,
    ) -> Result<HashMap<TenantId, Vec<Tenant>>> {
        self.note_read(call, operation::LIST_TENANTS).await?;
        let found = self.inner.store.tenant_tx(call.who.home, async |tx| {
            tx.children_of_each(parents, limit).await
        });
        let mut found = found.await?;
        found.retain(|tenant| self.sees(call, tenant));
        Ok(groups_of(found, |tenant| {
            tenant.parent.unwrap_or(tenant.id)
        }))
    }

    fn sees(&self, call: &Call, tenant: &Tenant) -> bool {
        Resource::in_tenant(&tenant.path, "tenants")
            .is_some_and(|resource| self.has(call, "tenant:definition:read", &resource))
    }
}

fn by<T, K: Hash + Eq>(items: Vec<T>, key: impl Fn(&T) -> K) -> HashMap<K, T> {
    items.into_iter().map(|item| (key(&item), item)).collect()
}

fn groups_of<T, K: Hash + Eq>(items: Vec<T>, key: impl Fn(&T) -> K) -> HashMap<K, Vec<T>> {
    let mut groups: HashMap<K, Vec<T>> = HashMap::new();
    for item in items {
        groups.entry(key(&item)).or_default().push(item);
    }
    groups
}
