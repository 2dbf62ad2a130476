//! The question that a placeholder asks, once everything inside of it is filled in.

use nimbus_core::ComponentName;
use nimbus_resolvers::ResolverKind;

use super::{LookupValue, ValueLookup, ValueLookupError};
use crate::calculate::is_remembered;

/// Who is asked, and for what.
pub(super) enum QueryTarget {
    Output(ComponentName),
    /// By the query's name.
    Aws(String),
    /// By the function's name.
    Calculate(String),
    Env,
    Resolver {
        resolver: ResolverKind,
        output: String,
    },
}

/// A lookup with its parameters filled in.
pub(super) struct PlaceholderQuery {
    pub(super) target: QueryTarget,
    pub(super) parameters: Vec<String>,
    /// A parameter was secret, so the answer is.
    pub(super) secret: bool,
    /// The placeholder makes a secret of the answer.
    pub(super) hidden: bool,
}

impl PlaceholderQuery {
    pub(super) async fn ask(
        &self,
        lookup: &dyn ValueLookup,
    ) -> Result<LookupValue, ValueLookupError> {
        let first = self.parameters.first().map_or("", String::as_str);
        match &self.target {
            QueryTarget::Output(component) => lookup.output(component, first).await,
            QueryTarget::Env => lookup.env(first).await,
            QueryTarget::Aws(query) => lookup.aws(query, &self.parameters).await,
            // What is made up is kept under its parameters: memories, plans and `rotate` show them.
            QueryTarget::Calculate(function) if self.secret && is_remembered(function) => {
                Err(ValueLookupError {
                    message: format!("a parameter of {function} may not be secret"),
                })
            }
            QueryTarget::Calculate(function) => {
                let (parameters, hidden) = (&self.parameters, self.hidden);
                lookup.calculate(function, parameters, hidden).await
            }
            // What a resolver is asked is the key of its lease: lists, plans and events show it.
            QueryTarget::Resolver { resolver, .. } if self.secret => Err(ValueLookupError {
                message: format!("a parameter of the resolver {resolver} may not be secret"),
            }),
            QueryTarget::Resolver { resolver, output } => {
                lookup.resolver(*resolver, output, &self.parameters).await
            }
        }
    }
}
