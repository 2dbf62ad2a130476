//! Loads that are put together: whatever the items of a list name is read with one statement for all of them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use async_graphql::Context;
use async_graphql::dataloader::{DataLoader, HashMapCache, Loader};
use nimbus_control_app::{
    App, Call, DeploymentEnvironment, Failure, Group, StoredDeployment, StoredRun, Tenant, User,
};
use nimbus_core::TenantId;
use uuid::Uuid;

use crate::act::{FieldResult, asked};
use crate::refusal::refused;

/// For whom.
pub(crate) struct Loads {
    pub(crate) app: App,
    pub(crate) call: Option<Call>,
}

impl Loads {
    fn call(&self) -> Result<&Call, Arc<Failure>> {
        self.call
            .as_ref()
            .ok_or_else(|| Arc::new(Failure::not_signed_in()))
    }
}

macro_rules! keys {
    ($($(#[$meta:meta])* $name:ident ($($part:ty),*);)*) => {
        $($(#[$meta])* #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub(crate) struct $name($(pub(crate) $part),*);)*
    };
}

keys! {
    /// A user of a tenant.
    UserKey(TenantId, Uuid);
    /// A group of a tenant.
    GroupKey(TenantId, Uuid);
    /// So many members of a group.
    MembersKey(TenantId, Uuid, u32);
    /// A deployment of a tenant.
    DeploymentKey(TenantId, String);
    /// So many runs of a deployment.
    RunsKey(TenantId, String, u32);
    /// Environments of a deployment.
    EnvironmentsKey(TenantId, String);
    /// A tenant.
    TenantKey(TenantId);
    /// So many children of a tenant.
    ChildrenKey(TenantId, u32);
}

type Loaded<K, V> = Result<HashMap<K, V>, Arc<Failure>>;

/// Keys that can be read together, by what they have in common.
fn together<K, P: Hash + Eq, I>(keys: &[K], split: impl Fn(&K) -> (P, I)) -> HashMap<P, Vec<I>> {
    let mut parts: HashMap<P, Vec<I>> = HashMap::new();
    for key in keys {
        let (place, id) = split(key);
        parts.entry(place).or_default().push(id);
    }
    parts
}

impl Loader<UserKey> for Loads {
    type Value = User;
    type Error = Arc<Failure>;

    async fn load(&self, keys: &[UserKey]) -> Loaded<UserKey, User> {
        let mut found = HashMap::new();
        for (tenant, ids) in together(keys, |UserKey(tenant, id)| (*tenant, *id)) {
            let users = self.app.users_by_id(self.call()?, tenant, &ids).await?;
            found.extend(
                users
                    .into_iter()
                    .map(|(id, user)| (UserKey(tenant, id), user)),
            );
        }
        Ok(found)
    }
}

impl Loader<GroupKey> for Loads {
    type Value = Group;
    type Error = Arc<Failure>;

    async fn load(&self, keys: &[GroupKey]) -> Loaded<GroupKey, Group> {
        let mut found = HashMap::new();
        for (tenant, ids) in together(keys, |GroupKey(tenant, id)| (*tenant, *id)) {
            let groups = self.app.groups_by_id(self.call()?, tenant, &ids).await?;
            found.extend(
                groups
                    .into_iter()
                    .map(|(id, group)| (GroupKey(tenant, id), group)),
            );
        }
        Ok(found)
    }
}

impl Loader<MembersKey> for Loads {
    type Value = Vec<User>;
    type Error = Arc<Failure>;

    async fn load(&self, keys: &[MembersKey]) -> Loaded<MembersKey, Vec<User>> {
        let mut found = HashMap::new();
        let parts = together(keys, |MembersKey(tenant, group, first)| {
            ((*tenant, *first), *group)
        });
        for ((tenant, first), groups) in parts {
            let (app, call) = (&self.app, self.call()?);
            let members = app.members_of_groups(call, tenant, &groups, first).await?;
            let members = members.into_iter();
            found.extend(members.map(|(group, users)| (MembersKey(tenant, group, first), users)));
        }
        Ok(found)
    }
}

impl Loader<DeploymentKey> for Loads {
    type Value = StoredDeployment;
    type Error = Arc<Failure>;

    async fn load(&self, keys: &[DeploymentKey]) -> Loaded<DeploymentKey, StoredDeployment> {
        let mut found = HashMap::new();
        for (tenant, ids) in together(keys, |DeploymentKey(tenant, id)| (*tenant, id.clone())) {
            let (app, call) = (&self.app, self.call()?);
            let rows = app.deployments_by_id(call, tenant, &ids).await?;
            found.extend(
                rows.into_iter()
                    .map(|(id, row)| (DeploymentKey(tenant, id), row)),
            );
        }
        Ok(found)
    }
}

impl Loader<RunsKey> for Loads {
    type Value = Vec<StoredRun>;
    type Error = Arc<Failure>;

    async fn load(&self, keys: &[RunsKey]) -> Loaded<RunsKey, Vec<StoredRun>> {
        let mut found = HashMap::new();
        let parts = together(keys, |RunsKey(tenant, id, first)| {
            ((*tenant, *first), id.clone())
        });
        for ((tenant, first), ids) in parts {
            let (app, call) = (&self.app, self.call()?);
            let runs = app.runs_of_deployments(call, tenant, &ids, first).await?;
            found.extend(
                runs.into_iter()
                    .map(|(id, runs)| (RunsKey(tenant, id, first), runs)),
            );
        }
        Ok(found)
    }
}

impl Loader<EnvironmentsKey> for Loads {
    type Value = Vec<DeploymentEnvironment>;
    type Error = Arc<Failure>;

    async fn load(
        &self,
        keys: &[EnvironmentsKey],
    ) -> Loaded<EnvironmentsKey, Vec<DeploymentEnvironment>> {
        let mut found = HashMap::new();
        for (tenant, ids) in together(keys, |EnvironmentsKey(tenant, id)| (*tenant, id.clone())) {
            let (app, call) = (&self.app, self.call()?);
            let rows = app.environments_of_deployments(call, tenant, &ids).await?;
            found.extend(
                rows.into_iter()
                    .map(|(id, rows)| (EnvironmentsKey(tenant, id), rows)),
            );
        }
        Ok(found)
    }
}

impl Loader<TenantKey> for Loads {
    type Value = Tenant;
    type Error = Arc<Failure>;

    async fn load(&self, keys: &[TenantKey]) -> Loaded<TenantKey, Tenant> {
        let ids: Vec<_> = keys.iter().map(|TenantKey(id)| *id).collect();
        let tenants = self.app.tenants_by_id(self.call()?, &ids).await?;
        Ok(tenants
            .into_iter()
            .map(|(id, tenant)| (TenantKey(id), tenant))
            .collect())
    }
}

impl Loader<ChildrenKey> for Loads {
    type Value = Vec<Tenant>;
    type Error = Arc<Failure>;

    async fn load(&self, keys: &[ChildrenKey]) -> Loaded<ChildrenKey, Vec<Tenant>> {
        let mut found = HashMap::new();
        for (first, ids) in together(keys, |ChildrenKey(id, first)| (*first, *id)) {
            let (app, call) = (&self.app, self.call()?);
            let children = app.children_of_tenants(call, &ids, first).await?;
            let children = children.into_iter();
            found.extend(children.map(|(id, tenants)| (ChildrenKey(id, first), tenants)));
        }
        Ok(found)
    }
}

/// What a key stands for, read together with others of its kind.
pub(crate) async fn load<K>(
    ctx: &Context<'_>,
    key: K,
) -> FieldResult<Option<<Loads as Loader<K>>::Value>>
where
    K: Clone + Hash + Eq + Send + Sync + 'static,
    Loads: Loader<K, Error = Arc<Failure>>,
{
    let loader = ctx.data::<DataLoader<Loads, HashMapCache>>()?;
    let trace_id = asked(ctx)?.caller.context.trace_id;
    let found = loader.load_one(key).await;
    found.map_err(|failure| refused(&failure, trace_id))
}
