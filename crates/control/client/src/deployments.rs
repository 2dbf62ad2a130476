//! Deployments, runs and workspaces of a tenant, in the types of the API.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nimbus_control_wire::{
    Deployment, DeploymentOutputs, DeploymentState, EnvironmentGate, EnvironmentGates,
    EnvironmentVersion, Environments, ManifestText, NewDeployment, NumberedEvent, Run, RunEvents,
    SignGate, StartRun, StateExport, WorkspaceChange, WorkspaceContents, WorkspaceEntry,
    WorkspaceFiles, WorkspaceTag,
};
use nimbus_core::{TraceId, printable};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::{REPEAT_KEY, encoded};
use crate::{Client, ClientError};

/// The most items of one page.
const LARGEST_PAGE: u32 = 500;

/// What is asked of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartedAction {
    Deploy,
    Destroy,
    Preview,
    RollBack,
    Refresh,
}

impl StartedAction {
    fn path(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Destroy => "destroy",
            Self::Preview => "preview",
            Self::RollBack => "rollback",
            Self::Refresh => "refresh",
        }
    }
}

/// What a tenant has on a server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RemoteDeployments {
    client: Client,
    /// Id or slug; the caller's own without one.
    tenant: Option<String>,
}

#[derive(Deserialize)]
struct ListedPage<T> {
    items: Vec<T>,
    next: Option<String>,
}

fn no_headers() -> Vec<(&'static str, String)> {
    Vec::new()
}

fn once() -> Vec<(&'static str, String)> {
    vec![(REPEAT_KEY, TraceId::random().to_string())]
}

fn body(of: &impl serde::Serialize) -> Value {
    // What goes wrong here is noticed by the server, which refuses nothing.
    serde_json::to_value(of).unwrap_or_default()
}

impl RemoteDeployments {
    pub fn new(client: Client, tenant: Option<String>) -> Self {
        Self { client, tenant }
    }

    /// The address of the server.
    pub fn server(&self) -> &str {
        self.client.server()
    }

    /// The tenant that was named; the caller's own without one.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// A path of the API with a query that names the tenant.
    pub(crate) fn path(&self, path: &str, query: &[(&str, &str)]) -> String {
        let tenant = self.tenant.iter().map(|tenant| ("tenant", tenant.as_str()));
        let all: Vec<String> = query
            .iter()
            .copied()
            .chain(tenant)
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect();
        match all.is_empty() {
            true => format!("/api/v1{path}"),
            false => format!("/api/v1{path}?{}", all.join("&")),
        }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, ClientError> {
        let path = self.path(path, query);
        self.client
            .ask(Method::GET, &path, None, no_headers())
            .await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        asked: &Value,
        headers: Vec<(&'static str, String)>,
    ) -> Result<T, ClientError> {
        let path = self.path(path, &[]);
        self.client
            .ask(Method::POST, &path, Some(asked), headers)
            .await
    }

    async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, ClientError> {
        let mut items = Vec::new();
        let mut after: Option<String> = None;
        let limit = LARGEST_PAGE.to_string();
        loop {
            let mut asked = query.to_vec();
            asked.push(("limit", &limit));
            if let Some(after) = &after {
                asked.push(("after", after));
            }
            let page: ListedPage<T> = self.get(path, &asked).await?;
            items.extend(page.items);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(items),
            }
        }
    }

    pub async fn deployments(&self) -> Result<Vec<Deployment>, ClientError> {
        self.list("/deployments", &[]).await
    }

    pub async fn deployment(&self, id: &str) -> Result<Deployment, ClientError> {
        self.get(&format!("/deployments/{}", encoded(id)), &[])
            .await
    }

    pub async fn manifest(&self, id: &str) -> Result<String, ClientError> {
        let path = format!("/deployments/{}/manifest", encoded(id));
        let text: ManifestText = self.get(&path, &[]).await?;
        Ok(text.manifest)
    }

    pub async fn create(&self, new: &NewDeployment) -> Result<Deployment, ClientError> {
        self.post("/deployments", &body(new), once()).await
    }

    /// Replaces a manifest, if it is still the one of `revision`.
    pub async fn write_manifest(
        &self,
        id: &str,
        revision: i64,
        manifest: String,
    ) -> Result<Deployment, ClientError> {
        let path = self.path(&format!("/deployments/{}", encoded(id)), &[]);
        let headers = vec![("if-match", format!("\"{revision}\""))];
        let text = body(&ManifestText { manifest });
        self.client
            .ask(Method::PUT, &path, Some(&text), headers)
            .await
    }

    /// Takes a deployment out of use.
    pub async fn archive(&self, id: &str) -> Result<(), ClientError> {
        let path = self.path(&format!("/deployments/{}", encoded(id)), &[]);
        let answer: Value = self
            .client
            .ask(Method::DELETE, &path, None, no_headers())
            .await?;
        drop(answer);
        Ok(())
    }

    /// Environments with what is deployed there.
    pub async fn status(&self, id: &str, rehearsal: bool) -> Result<Environments, ClientError> {
        let path = format!("/deployments/{}/status", encoded(id));
        self.get(&path, &[("rehearsal", word(rehearsal))]).await
    }

    /// Oldest first.
    pub async fn versions(
        &self,
        id: &str,
        environment: &str,
        rehearsal: bool,
    ) -> Result<Vec<EnvironmentVersion>, ClientError> {
        let path = format!(
            "/deployments/{}/environments/{}/versions",
            encoded(id),
            encoded(environment)
        );
        self.list(&path, &[("rehearsal", word(rehearsal))]).await
    }

    /// What environments need before the next one follows.
    pub async fn gates(&self, id: &str, rehearsal: bool) -> Result<EnvironmentGates, ClientError> {
        let path = format!("/deployments/{}/gates", encoded(id));
        self.get(&path, &[("rehearsal", word(rehearsal))]).await
    }

    /// Records that an item of a gate is done.
    pub async fn sign_gate(
        &self,
        id: &str,
        environment: &str,
        item: &str,
        sign: &SignGate,
    ) -> Result<EnvironmentGate, ClientError> {
        let path = format!(
            "/deployments/{}/environments/{}/gate/{}",
            encoded(id),
            encoded(environment),
            encoded(item)
        );
        let path = self.path(&path, &[]);
        self.client
            .ask(Method::PUT, &path, Some(&body(sign)), no_headers())
            .await
    }

    pub async fn switch(
        &self,
        id: &str,
        environment: &str,
        enabled: bool,
    ) -> Result<Deployment, ClientError> {
        let verb = if enabled { "enable" } else { "disable" };
        let path = format!(
            "/deployments/{}/environments/{}/{verb}",
            encoded(id),
            encoded(environment)
        );
        self.post(&path, &json!({}), no_headers()).await
    }

    pub async fn state(
        &self,
        id: &str,
        environment: &str,
        rehearsal: bool,
    ) -> Result<DeploymentState, ClientError> {
        let path = format!("/deployments/{}/state", encoded(id));
        let query = [("environment", environment), ("rehearsal", word(rehearsal))];
        self.get(&path, &query).await
    }

    pub async fn outputs(
        &self,
        id: &str,
        environment: &str,
        rehearsal: bool,
    ) -> Result<DeploymentOutputs, ClientError> {
        let path = format!("/deployments/{}/outputs", encoded(id));
        let query = [("environment", environment), ("rehearsal", word(rehearsal))];
        self.get(&path, &query).await
    }

    pub async fn export(
        &self,
        id: &str,
        environment: &str,
        rehearsal: bool,
    ) -> Result<StateExport, ClientError> {
        let path = format!("/deployments/{}/state/export", encoded(id));
        let asked = json!({"environment": environment, "rehearsal": rehearsal});
        self.post(&path, &asked, no_headers()).await
    }

    /// Queues a run; asked twice because of a broken connection, it is queued once.
    pub async fn start(
        &self,
        id: &str,
        action: StartedAction,
        asked: &StartRun,
    ) -> Result<Run, ClientError> {
        let path = format!("/deployments/{}/{}", encoded(id), action.path());
        self.post(&path, &body(asked), once()).await
    }

    /// Runs of a deployment, newest first.
    pub async fn runs(&self, id: &str, environment: Option<&str>) -> Result<Vec<Run>, ClientError> {
        let mut query = vec![("deployment", id)];
        query.extend(environment.map(|name| ("environment", name)));
        self.list("/runs", &query).await
    }

    /// Runs of all deployments, newest first.
    pub async fn all_runs(&self) -> Result<Vec<Run>, ClientError> {
        self.list("/runs", &[]).await
    }

    pub async fn run(&self, run: &str) -> Result<Run, ClientError> {
        self.get(&format!("/runs/{}", encoded(run)), &[]).await
    }

    /// Lets a run go on; without creates of unknown outcome, when somebody has looked for them in vain.
    pub async fn resume(&self, run: &str, forget_creates: bool) -> Result<Run, ClientError> {
        let path = format!("/runs/{}/resume", encoded(run));
        let query: &[(&str, &str)] = match forget_creates {
            true => &[("forget_creates", "true")],
            false => &[],
        };
        let path = self.path(&path, query);
        self.client
            .ask(Method::POST, &path, Some(&json!({})), no_headers())
            .await
    }

    /// `cancel`, `pause` or `resume`.
    pub async fn signal(&self, run: &str, word: &str) -> Result<Run, ClientError> {
        let path = format!("/runs/{}/{word}", encoded(run));
        self.post(&path, &json!({}), no_headers()).await
    }

    pub async fn events(&self, run: &str, after: i64) -> Result<RunEvents, ClientError> {
        let after = after.to_string();
        let path = format!("/runs/{}/events", encoded(run));
        let query = [("after", after.as_str()), ("limit", "1000")];
        let mut page: RunEvents = self.get(&path, &query).await?;
        page.items.iter_mut().for_each(make_printable);
        Ok(page)
    }

    /// All files of the tenant's workspace, and what names them at once.
    pub async fn workspace(&self) -> Result<(Vec<WorkspaceEntry>, String), ClientError> {
        let limit = LARGEST_PAGE.to_string();
        'whole: loop {
            let mut items = Vec::new();
            let mut after: Option<String> = None;
            let mut seen: Option<String> = None;
            loop {
                let mut asked = vec![("limit", limit.as_str())];
                if let Some(after) = &after {
                    asked.push(("after", after));
                }
                let page: WorkspaceFiles = self.get("/workspace", &asked).await?;
                // Pages of two workspaces are no workspace.
                if seen.get_or_insert_with(|| page.tag.clone()) != &page.tag {
                    continue 'whole;
                }
                items.extend(page.items);
                match page.next {
                    Some(next) => after = Some(next),
                    None => return Ok((items, page.tag)),
                }
            }
        }
    }

    /// Contents by digest, in base64.
    pub async fn contents(
        &self,
        digests: &[String],
    ) -> Result<BTreeMap<String, String>, ClientError> {
        let digests = digests.join(",");
        let found: WorkspaceContents = self
            .get("/workspace/contents", &[("digests", &digests)])
            .await?;
        Ok(found.contents)
    }

    pub async fn store_contents(&self, contents: WorkspaceContents) -> Result<(), ClientError> {
        let answer: Value = self
            .post("/workspace/contents", &body(&contents), once())
            .await?;
        drop(answer);
        Ok(())
    }

    pub async fn change_workspace(
        &self,
        change: &WorkspaceChange,
    ) -> Result<WorkspaceTag, ClientError> {
        let path = self.path("/workspace", &[]);
        self.client
            .ask(Method::PUT, &path, Some(&body(change)), no_headers())
            .await
    }
}

/// Events hold what programs of others printed, and are read in terminals. An older server may have kept it as it was.
pub(crate) fn make_printable(item: &mut NumberedEvent) {
    fn clean(value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(shown) = printable(text) {
                    *text = shown;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(clean),
            Value::Object(entries) => entries.values_mut().for_each(clean),
            _ => {}
        }
    }
    clean(&mut item.event);
}

fn word(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_printed_does_not_reach_a_terminal_as_it_is() {
        let event = json!({"event": "diagnostic", "message": "\u{1b}]0;owned\u{7}hello\u{1b}[2J"});
        let mut item = NumberedEvent::new(1, event);
        make_printable(&mut item);
        assert_eq!(item.event["message"], "hello");
    }
}
