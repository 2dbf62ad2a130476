//! Groups, which carry roles for their members.

use nimbus_control_auth::operation;
use nimbus_control_store::{Group, User};
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
    pub async fn group_list(&self, call: &Call, tenant: TenantId) -> Result<Vec<Group>> {
        let permit = self.permit(call, operation::LIST_GROUPS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let groups = tx.group_list().await?;
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
        let description: String = new.description.chars().take(500).collect();
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let group = tx.group_create(&name, &description).await?;
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
            .transpose()?;
        let description: Option<String> = patch
            .description
            .map(|text| text.chars().take(500).collect());
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let (before, after) = tx
                    .group_update(group, name.as_deref(), description.as_deref())
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
    ) -> Result<Vec<User>> {
        let permit = self.permit(call, operation::LIST_MEMBERS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut members = Vec::new();
                for id in tx.group_members(group).await? {
                    members.push(tx.user_get(id).await?);
                }
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
                tx.group_delete(group).await?;
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
                let rows: Vec<_> = tx
                    .role_assignments()
                    .await?
                    .into_iter()
                    .filter(|row| row.group_id == Some(group))
                    .collect();
                for assignment in self.assignments(tx, &rows).await? {
                    self.ensure_covers(call, &assignment.role, assignment.reach, &permit.resource)?;
                }
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
                tx.group_remove(group, user).await?;
                let record = permit
                    .record()
                    .on(group)
                    .before(json!({"member": user.to_string()}));
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }
}
