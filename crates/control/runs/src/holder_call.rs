//! What a worker on another machine asks a server about the run that it has, one call for each thing that a run does.
//!
//! A server answers for the run that the worker holds and for no other: deployment, tenant and epoch are those of the
//! row, never the call's. A call that comes twice, because its answer was lost, changes things once.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_control_store::{StoredRule, StoredRun};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result, TenantId};
use nimbus_engine_backend::store::{
    ListedObject, Put, Storage as _, StorageError, Tag, WriteCondition,
};
use nimbus_orchestrator::{RunId, UnitMemory, VersionRecord};
use nimbus_resolvers::{LeaseHolder, ResolverQuestion, Settlement, UnitFacts};
use nimbus_runs::ports::{ResolverPort as _, RunStore as _, UnitMemories, VersionStore};
use nimbus_runs::{RunRequest, SealedPlan};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::access::{DatabaseRun, RunAccess as _};
use crate::leases::LeaseTables;
use crate::tables::{read, taken_over};
use crate::tenant_run::TenantRuns;

/// One thing that is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub enum HolderCall {
    Manifest,
    Begin {
        request: Box<RunRequest>,
    },
    Find {
        run: u32,
    },
    RunsOf {
        environment: EnvironmentName,
    },
    Events {
        run: u32,
        after: i64,
    },
    /// `after` is how many events there were.
    Append {
        after: i64,
        events: Vec<Value>,
    },
    Prune {
        environment: EnvironmentName,
        keep: usize,
    },
    KeepPlan {
        plan: Box<SealedPlan>,
    },
    Memory {
        component: ComponentName,
        environment: EnvironmentName,
    },
    Remember {
        component: ComponentName,
        environment: EnvironmentName,
        memory: Box<UnitMemory>,
    },
    Versions {
        environment: EnvironmentName,
    },
    AddVersion {
        environment: EnvironmentName,
        version: Box<VersionRecord>,
    },
    Signatures {
        environment: EnvironmentName,
    },
    SettleEnded {
        environment: EnvironmentName,
    },
    Resolve {
        facts: UnitFacts,
        holder: LeaseHolder,
        question: ResolverQuestion,
    },
    Settle {
        environment: EnvironmentName,
        run: u32,
        units: BTreeMap<ComponentName, Settlement>,
    },
    GiveLeasesBack {
        environment: EnvironmentName,
        holder: LeaseHolder,
        leases: Vec<Uuid>,
    },
    Leases {
        environment: EnvironmentName,
    },
    /// Contracts of the versions that the run is made of, and the rules that hold for the tenant.
    Contracts,
    KeepParameters {
        environment: EnvironmentName,
        component: ComponentName,
        parameters: Map<String, Value>,
    },
    Workspace,
    Content {
        digest: String,
    },
    PinnedFiles,
    Secrets,
    Credentials,
    StateGet {
        key: String,
    },
    StatePut {
        key: String,
        content: StateContent,
        expect: StateCondition,
        /// The object's tag once it is written.
        tag: Uuid,
    },
    StateCopy {
        from: String,
        to: String,
    },
    StateDelete {
        key: String,
    },
    StateList {
        folder: String,
    },
    StateTime,
}

/// Bytes on their way, with what they have to be when they arrive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateContent {
    base64: String,
    size: usize,
    sha256: String,
}

impl StateContent {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            base64: STANDARD.encode(bytes),
            size: bytes.len(),
            sha256: hex::encode(Sha256::digest(bytes)),
        }
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>> {
        let bytes = STANDARD.decode(&self.base64).unwrap_or_default();
        if bytes.len() == self.size && hex::encode(Sha256::digest(&bytes)) == self.sha256 {
            return Ok(bytes);
        }
        Err(Error::new(
            ErrorCode::INPUT_INVALID,
            "content did not arrive as it was sent",
        ))
    }
}

/// What a write requires of what is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateCondition {
    Anything,
    Absent,
    Unchanged(String),
}

impl StateCondition {
    pub(crate) fn of(expect: WriteCondition) -> Option<Self> {
        match expect {
            WriteCondition::Anything => Some(Self::Anything),
            WriteCondition::Absent => Some(Self::Absent),
            WriteCondition::Unchanged(Tag::Entity(tag)) => Some(Self::Unchanged(tag)),
            WriteCondition::Unchanged(Tag::Digest(_)) => None,
        }
    }

    fn condition(self) -> WriteCondition {
        match self {
            Self::Anything => WriteCondition::Anything,
            Self::Absent => WriteCondition::Absent,
            Self::Unchanged(tag) => WriteCondition::Unchanged(Tag::Entity(tag)),
        }
    }
}

/// An object of a state, as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentObject {
    pub(crate) content: StateContent,
    pub(crate) tag: String,
    pub(crate) modified: jiff::Timestamp,
}

/// One object of a list, as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentListing {
    pub(crate) key: String,
    pub(crate) size: u64,
    pub(crate) modified: jiff::Timestamp,
}

/// What versions say of their parameters, by component, and the rules that are held against them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentContracts {
    pub(crate) contracts: BTreeMap<ComponentName, (Value, Map<String, Value>)>,
    pub(crate) rules: Vec<StoredRule>,
}

impl TenantRuns {
    /// Answers what a worker asks about the run that it has.
    ///
    /// # Errors
    ///
    /// When the run is somebody else's by now, or what was asked fails.
    pub async fn answer(
        &self,
        tenant: TenantId,
        run: &StoredRun,
        call: HolderCall,
    ) -> Result<Value> {
        let access = self.access(tenant, run).await?;
        let answered = Box::pin(access.answer(run, call)).await;
        answered.map_err(taken_over)
    }
}

impl DatabaseRun {
    async fn answer(&self, run: &StoredRun, call: HolderCall) -> Result<Value> {
        let tables = &self.tables;
        match call {
            HolderCall::Manifest => value(tables.manifest().await?),
            HolderCall::Begin { request } => value(tables.begin(*request).await?),
            HolderCall::Find { run } => value(tables.find(RunId(run)).await?),
            HolderCall::RunsOf { environment } => value(tables.of_environment(environment).await?),
            HolderCall::Events { run, after } => {
                let page = tables.events_page(RunId(run), after).await?;
                let events = page.into_iter().map(|stored| (stored.seq, stored.event));
                value(events.collect::<Vec<_>>())
            }
            HolderCall::Append { after, events } => {
                value(tables.append_values(after, events).await?)
            }
            HolderCall::Prune { environment, keep } => {
                value(tables.prune(environment, keep).await?)
            }
            HolderCall::KeepPlan { plan } => value(tables.keep_plan(&plan).await?),
            HolderCall::Memory {
                component,
                environment,
            } => value(UnitMemories::load(tables, &component, environment).await?),
            HolderCall::Remember {
                component,
                environment,
                memory,
            } => value(tables.save(&component, environment, &memory).await?),
            HolderCall::Versions { environment } => {
                value(VersionStore::all(tables, environment).await?)
            }
            HolderCall::AddVersion {
                environment,
                version,
            } => value(tables.add(environment, &version).await?),
            HolderCall::Signatures { environment } => {
                use nimbus_runs::ports::GateStore as _;
                value(tables.signatures(environment).await?)
            }
            HolderCall::Workspace => value(self.workspace().await?),
            HolderCall::Content { digest } => {
                value(StateContent::new(&self.content(&digest).await?))
            }
            HolderCall::PinnedFiles => value(self.pinned_files().await?),
            HolderCall::Secrets => value(self.secrets().await?),
            HolderCall::Credentials => {
                // Of the environment that the run is in: a rehearsal has none.
                match run.rehearsal {
                    true => value(BTreeMap::<String, String>::new()),
                    false => value(self.credentials(environment_of(run)?).await?),
                }
            }
            call => match self.answer_resolvers(call).await? {
                Ok(answer) => Ok(answer),
                Err(call) => self.answer_states(call).await,
            },
        }
    }

    /// Calls about what resolvers lease; any other is given back.
    async fn answer_resolvers(&self, call: HolderCall) -> Result<Result<Value, HolderCall>> {
        let leases = LeaseTables::new(&self.tables);
        let answer = match call {
            HolderCall::SettleEnded { environment } => {
                value(leases.settle_ended(environment).await?)
            }
            HolderCall::Resolve {
                facts,
                holder,
                question,
            } => {
                let facts = UnitFacts {
                    deployment: self.tables.held.deployment.clone(),
                    ..facts
                };
                value(leases.answer(&facts, self.own(holder), &question).await?)
            }
            HolderCall::Settle {
                environment,
                run,
                units,
            } => value(leases.settle(environment, RunId(run), &units).await?),
            HolderCall::GiveLeasesBack {
                environment,
                holder,
                leases: given,
            } => value(
                leases
                    .give_back(environment, self.own(holder), &given)
                    .await?,
            ),
            HolderCall::Leases { environment } => value(leases.held(environment).await?),
            HolderCall::Contracts => {
                let vault = &self.tables.vault;
                let rules = vault.tx(async |tx| tx.governance_rules(vault.tenant()).await);
                value(SentContracts {
                    contracts: self.catalog.contract_parts(vault).await?,
                    rules: rules.await?,
                })
            }
            HolderCall::KeepParameters {
                environment,
                component,
                parameters,
            } => value(
                leases
                    .keep_parameters(environment, &component, &parameters)
                    .await?,
            ),
            other => return Ok(Err(other)),
        };
        answer.map(Ok)
    }

    /// A worker leases for plans and for the run that it has.
    fn own(&self, holder: LeaseHolder) -> LeaseHolder {
        match holder {
            LeaseHolder::Plan => LeaseHolder::Plan,
            LeaseHolder::Run(_) => {
                LeaseHolder::Run(u64::from(self.tables.held.number.unsigned_abs()))
            }
        }
    }

    async fn answer_states(&self, call: HolderCall) -> Result<Value> {
        let storage = &self.storage;
        match call {
            HolderCall::StateGet { key } => {
                let found = storage.get(&key).await.map_err(stored)?;
                value(found.map(|object| SentObject {
                    content: StateContent::new(&object.bytes),
                    tag: match object.tag {
                        Tag::Entity(tag) => tag,
                        // Nothing here has such a tag, and nothing is written on it.
                        Tag::Digest(_) => String::new(),
                    },
                    modified: object.modified,
                }))
            }
            HolderCall::StatePut {
                key,
                content,
                expect,
                tag,
            } => {
                let bytes = content.bytes()?;
                let put = storage.put_as(&key, &bytes, expect.condition(), tag).await;
                value(put.map_err(stored)? != Put::Refused)
            }
            HolderCall::StateCopy { from, to } => {
                value(storage.copy(&from, &to).await.map_err(stored)?)
            }
            HolderCall::StateDelete { key } => value(storage.delete(&key).await.map_err(stored)?),
            HolderCall::StateList { folder } => {
                let sent = |object: ListedObject| SentListing {
                    key: object.key,
                    size: object.size,
                    modified: object.modified,
                };
                let listed = storage.list(&folder).await.map_err(stored)?;
                value(listed.into_iter().map(sent).collect::<Vec<_>>())
            }
            HolderCall::StateTime => value(storage.time().await.map_err(stored)?),
            _ => Err(Error::new(
                ErrorCode::INTERNAL,
                "a call of a worker has no answer",
            )),
        }
    }
}

fn environment_of(run: &StoredRun) -> Result<EnvironmentName> {
    read("an environment", json!(run.environment))
}

fn value(answer: impl Serialize) -> Result<Value> {
    serde_json::to_value(answer).map_err(|error| {
        let message = format!("an answer cannot be written: {error}");
        Error::new(ErrorCode::INTERNAL, message)
    })
}

/// Why the storage failed, as it was given.
fn stored(error: StorageError) -> Error {
    match error {
        StorageError::Given { source, .. } => source,
        other => Error::new(ErrorCode::INTERNAL, other.to_string()),
    }
}
