//! Groups, which carry roles for their members.

use nimbus_control_auth::operation;
use nimbus_control_store::{Group, ListPage, TenantTx, User};
use nimbus_core::{TenantId, UserId};
use serde_json::json;
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::failure::Result;
use crate::input;

/// A group to be made.
#[derive(Debug)]
pub struct NewGroup {
    pub name: String,
    pub description: String,
}

/// What changes about a group.
#[derive(Debug, Default)]
pub struct GroupPatch {
    pub name: Option<String>,
    pub description: Option<String>,
}

impl App {
    pub async fn group_list(
        &self,
        call: &Call,
        tenant: TenantId,
        name: Option<String>,
        page: ListPage<String>,
    ) -> Result<Vec<Group>> {
        let permit = self.permit(call, operation::LIST_GROUPS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let groups = match &name {
                    Some(name) => tx.group_by_name(name).await?.into_iter().collect(),
                    None => tx.group_list(&page).await?,
                };
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(groups)
            })
            .await
    }

    pub async fn group_create(
        &self,
        call: &Call,
        tenant: TenantId,
        new: NewGroup,
    ) -> Result<Group> {
        let permit = self.permit(call, operation::CREATE_GROUP, tenant).await?;
        let name = input::name("name", &new.name, 100)?;
        let looks_like = input::looks_like(&name);
        let description = input::text("description", &new.description, 500)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let group = tx.group_create(&name, &looks_like, &description).await?;
                let record = permit
                    .record()
                    .on(group.id)
                    .after(json!({"name": group.name}));
                self.audit(tx, &call.context, record).await?;
                Ok(group)
            })
            .await
    }

    pub async fn group_update(
        &self,
        call: &Call,
        tenant: TenantId,
        group: Uuid,
        patch: GroupPatch,
    ) -> Result<Group> {
        let permit = self.permit(call, operation::UPDATE_GROUP, tenant).await?;
        let name = patch
            .name
            .map(|name| input::name("name", &name, 100))
            .transpose()?
            .map(|name| (input::looks_like(&name), name));
        let description = patch
            .description
            .map(|text| input::text("description", &text, 500))
            .transpose()?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let (before, after) = tx
                    .group_update(
                        group,
                        name.as_ref()
                            .map(|(looks_like, name)| (name.as_str(), looks_like.as_str())),
                        description.as_deref(),
                    )
                    .await?;
                let view =
                    |group: &Group| json!({"name": group.name, "description": group.description});
                let record = permit
                    .record()
                    .on(group)
                    .before(view(&before))
                    .after(view(&after));
                self.audit(tx, &call.context, record).await?;
                Ok(after)
            })
            .await
    }

    pub async fn group_members(
        &self,
        call: &Call,
        tenant: TenantId,
        group: Uuid,
        page: ListPage<String>,
    ) -> Result<Vec<User>> {
        let permit = self.permit(call, operation::LIST_MEMBERS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let members = tx.group_members(group, &page).await?;
                self.audit(tx, &call.context, permit.record().on(group))
                    .await?;
                Ok(members)
            })
            .await
    }

    pub async fn group_delete(&self, call: &Call, tenant: TenantId, group: Uuid) -> Result<()> {
        let permit = self.permit(call, operation::DELETE_GROUP, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let path = &permit.resource.path;
                self.ensure_holds_group(call, tx, group, path, false)
                    .await?;
                self.keeping_administrator(tx, path, async |tx| Ok(tx.group_delete(group).await?))
                    .await?;
                self.audit(tx, &call.context, permit.record().on(group))
                    .await
                    .map(drop)
            })
            .await
    }

    /// A member gets the group's roles, so whoever adds one must have them.
    pub async fn group_add(
        &self,
        call: &Call,
        tenant: TenantId,
        group: Uuid,
        user: UserId,
    ) -> Result<()> {
        let permit = self.permit(call, operation::ADD_MEMBER, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let path = &permit.resource.path;
                self.ensure_holds_group(call, tx, group, path, true).await?;
                tx.group_add(group, user).await?;
                let record = permit
                    .record()
                    .on(group)
                    .after(json!({"member": user.to_string()}));
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }

    pub async fn group_remove(
        &self,
        call: &Call,
        tenant: TenantId,
        group: Uuid,
        user: UserId,
    ) -> Result<()> {
        let permit = self.permit(call, operation::REMOVE_MEMBER, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let path = &permit.resource.path;
                self.ensure_holds_group(call, tx, group, path, false)
                    .await?;
                self.keeping_administrator(tx, path, async |tx| {
                    Ok(tx.group_remove(group, user).await?)
                })
                .await?;
                let record = permit
                    .record()
                    .on(group)
                    .before(json!({"member": user.to_string()}));
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }

    /// What a group carries goes to whoever joins it, and is lost by whoever leaves: all of it must be the
    /// caller's.
    async fn ensure_holds_group(
        &self,
        call: &Call,
        tx: &mut TenantTx,
        group: Uuid,
        path: &[TenantId],
        lasting: bool,
    ) -> Result<()> {
        tx.group_lock(group).await?;
        let rows = tx.role_assignments_of_group(group).await?;
        let carried = self.assignments(tx, &rows).await?;
        self.ensure_holds_all(call, &carried, path, lasting)
    }
}
