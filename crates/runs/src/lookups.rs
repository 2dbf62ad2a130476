//! Where the values of one unit's configuration come from: other units, the outside, and resolvers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{LookupValue, UnitMemory, ValueLookup, ValueLookupError};
use nimbus_resolvers::pipeline::ResolverService;
use nimbus_resolvers::{
    LeaseHolder, ResolverAnswer, ResolverError, ResolverKind, ResolverQuestion, UnitFacts,
};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::context::RunContext;
use crate::leases::{ShownLease, give_back};

/// Answers the lookups of one unit.
pub(crate) struct UnitLookups<'a> {
    pub(crate) context: &'a RunContext,
    facts: UnitFacts,
    holder: LeaseHolder,
    memory: Mutex<UnitMemory>,
    /// What resolvers answered, by question.
    answers: SyncMutex<BTreeMap<String, ShownLease>>,
    /// Leases that were taken for these answers.
    taken: SyncMutex<Vec<Uuid>>,
    /// Why a resolver refused: the code and what to do, which a lookup's message does not have.
    refusal: SyncMutex<Option<(ErrorCode, Option<String>)>>,
}

/// What is left of the lookups of a unit once all of them were asked.
pub(crate) struct AskedLookups {
    pub(crate) memory: UnitMemory,
    pub(crate) answers: BTreeMap<String, ShownLease>,
    pub(crate) taken: Vec<Uuid>,
}

impl<'a> UnitLookups<'a> {
    pub(crate) fn new(
        context: &'a RunContext,
        facts: UnitFacts,
        holder: LeaseHolder,
        memory: UnitMemory,
    ) -> Self {
        Self {
            context,
            facts,
            holder,
            memory: Mutex::new(memory),
            answers: SyncMutex::default(),
            taken: SyncMutex::default(),
            refusal: SyncMutex::default(),
        }
    }

    pub(crate) fn into_asked(self) -> AskedLookups {
        AskedLookups {
            memory: self.memory.into_inner(),
            answers: self.answers.into_inner(),
            taken: self.taken.into_inner(),
        }
    }

    /// The code and the help of the resolver that refused, if one did.
    pub(crate) fn refusal(&self) -> Option<(ErrorCode, Option<String>)> {
        self.refusal.lock().clone()
    }

    /// Asks the live service; what it answered is shown, and what was taken for it is remembered.
    async fn ask(&self, question: &ResolverQuestion) -> Result<ResolverAnswer> {
        let port = &self.context.ports.resolvers;
        let answer = port.answer(&self.facts, self.holder, question).await?;
        if answer.fresh {
            self.taken.lock().extend(answer.lease);
        }
        let definition = question.resolver.definition();
        let open = |name: &str| definition.output(name).is_ok_and(|field| !field.secret);
        let shown = answer.outputs.iter().filter(|(name, _)| open(name));
        let shown = ShownLease {
            resolver: question.resolver,
            question: question.key(),
            outputs: shown
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            lease: answer.lease,
            notes: answer.notes.clone(),
        };
        self.answers.lock().insert(shown.question.clone(), shown);
        Ok(answer)
    }

    /// A refusal as a lookup tells it.
    fn refused(&self, error: &Error) -> ValueLookupError {
        let help = error.help().map(ToOwned::to_owned);
        *self.refusal.lock() = Some((error.code(), help));
        ValueLookupError {
            message: error.to_string(),
        }
    }
}

/// For inputs that a component's contract binds.
#[async_trait]
impl ResolverService for UnitLookups<'_> {
    async fn answer(&self, question: &ResolverQuestion) -> Result<ResolverAnswer, ResolverError> {
        let answer = self.ask(question).await;
        answer.map_err(|error| ResolverError::from(&error))
    }

    async fn give_back(&self, leases: &[Uuid]) -> Result<(), ResolverError> {
        let context = self.context;
        give_back(&context.ports, context.environment, self.holder, leases).await;
        Ok(())
    }
}

#[async_trait]
impl ValueLookup for UnitLookups<'_> {
    async fn output(
        &self,
        component: &ComponentName,
        output: &str,
    ) -> Result<LookupValue, ValueLookupError> {
        if self.context.expected.lock().await.contains(component) {
            return Ok(LookupValue::Unknown);
        }
        let outputs = self.context.outputs_of(component).await;
        let outputs = outputs.map_err(|error| ValueLookupError {
            message: error.to_string(),
        })?;
        let found = outputs.get(output).cloned();
        // Recorded outputs are asked for once: a backend may be far away.
        let mut known = self.context.outputs.lock().await;
        known.entry(component.clone()).or_insert(outputs);
        drop(known);
        Ok(found.unwrap_or(LookupValue::Absent))
    }

    async fn aws(
        &self,
        query: &str,
        parameters: &[String],
    ) -> Result<LookupValue, ValueLookupError> {
        let target = self.context.target();
        let region = target.map_or("", |target| target.region.as_str());
        let values = &self.context.ports.values;
        values.aws(region, query, parameters).await
    }

    async fn calculate(
        &self,
        function: &str,
        parameters: &[String],
        hidden: bool,
    ) -> Result<LookupValue, ValueLookupError> {
        let mut memory = self.memory.lock().await;
        let values = &self.context.ports.values;
        let calculated = values.calculate(function, parameters, hidden, &mut memory);
        calculated.await
    }

    async fn env(&self, variable: &str) -> Result<LookupValue, ValueLookupError> {
        self.context.ports.values.env(variable).await
    }

    async fn resolver(
        &self,
        resolver: ResolverKind,
        output: &str,
        parameters: &[String],
    ) -> Result<LookupValue, ValueLookupError> {
        let field = resolver.definition().output(output);
        let field = field.map_err(|error| self.refused(&error.into()))?;
        let question = ResolverQuestion::from_texts(resolver, parameters);
        let question = question.map_err(|error| self.refused(&error.into()))?;
        let answer = self.ask(&question).await;
        let answer = answer.map_err(|error| self.refused(&error))?;
        let value = answer.outputs.get(output).filter(|value| !value.is_null());
        Ok(match value {
            Some(value) => LookupValue::Known {
                value: value.clone(),
                secret: field.secret,
            },
            None => LookupValue::Absent,
        })
    }

    async fn secret(&self, name: &str) -> Result<LookupValue, ValueLookupError> {
        let environment = self.context.environment;
        self.context.ports.values.secret(environment, name).await
    }
}
