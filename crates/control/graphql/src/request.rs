//! A request as it arrives, one document or several, and the answer to it.

use async_graphql::parser::types::ExecutableDocument;
use async_graphql::{Request, Response, Variables};
use nimbus_control_app::Failure;
use nimbus_core::TraceId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cost::{self, storable_text};
use crate::refusal::{in_form, refused_document};
use crate::variables::ensure_given;

/// Errors of one document that are told.
const MOST_ERRORS: usize = 50;

/// Documents of one request.
const MOST_DOCUMENTS: usize = 10;

/// Nobody has to be signed in for these.
const OPEN: &[&str] = &["login", "refreshToken", "__typename"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenDocument {
    query: String,
    #[serde(default, rename = "operationName")]
    operation_name: Option<String>,
    #[serde(default)]
    variables: Option<Value>,
    /// For clients that send some; nothing here reads them.
    #[serde(default, rename = "extensions")]
    _extensions: Option<Value>,
}

/// Documents that may be carried out: each was read and costs no more than one may.
#[derive(Debug)]
pub struct GraphqlBatch {
    pub(crate) requests: Vec<Request>,
    several: bool,
    roots: Vec<String>,
    changes: bool,
}

impl GraphqlBatch {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// When it is not one, or has a document that is not carried out.
    pub fn read(body: &[u8], introspection: bool) -> Result<Self, GraphqlRefusal> {
        let (several, documents) = given_documents(body).map_err(GraphqlRefusal::Malformed)?;
        let mut batch = Self {
            requests: Vec::new(),
            several,
            roots: Vec::new(),
            changes: false,
        };
        for document in documents {
            batch.add(document, introspection)?;
        }
        Ok(batch)
    }

    fn add(&mut self, given: GivenDocument, introspection: bool) -> Result<(), GraphqlRefusal> {
        let refused = |open| move |failure| GraphqlRefusal::Document { failure, open };
        let read = cost::read(&given.query, introspection).map_err(refused(false))?;
        if read.watches {
            let words = "subscriptions are watched over a WebSocket at the same address";
            return Err(refused(false)(Failure::field("query", words)));
        }
        self.roots.extend(read.roots);
        self.changes |= read.changes;
        let variables = given.variables.unwrap_or_default();
        let open = self.is_open();
        let request = request(given.query, given.operation_name, variables, read.document);
        self.requests.push(request.map_err(refused(open))?);
        Ok(())
    }

    /// Fields at the root of all documents: each counts as one request of its caller.
    pub fn root_fields(&self) -> usize {
        self.roots.len()
    }

    /// Whether it only signs in, which nobody has to have done before.
    pub fn is_open(&self) -> bool {
        self.roots.iter().all(|root| OPEN.contains(&root.as_str()))
    }

    /// Whether something changes, which is finished even if whoever asked is gone.
    pub fn changes(&self) -> bool {
        self.changes
    }

    pub(crate) fn answer(&self, responses: Vec<Response>, trace_id: TraceId) -> GraphqlAnswer {
        let mut all_refused = true;
        let mut bodies = Vec::new();
        for mut response in responses {
            // What fails while a document is carried out has the path of its field.
            let refused = !response.errors.is_empty()
                && response.errors.iter().all(|error| error.path.is_empty());
            all_refused &= refused;
            // A document has as many mistakes as it has words; nobody reads more than the first.
            let errors = response.errors.into_iter().take(MOST_ERRORS);
            response.errors = errors.map(|error| in_form(error, trace_id)).collect();
            bodies.push(match refused {
                true => json!({"errors": response.errors}),
                false => serde_json::to_value(&response).unwrap_or_default(),
            });
        }
        GraphqlAnswer {
            status: if all_refused { 400 } else { 200 },
            refused: all_refused,
            body: match (self.several, bodies.pop()) {
                (false, Some(body)) => body,
                (_, last) => {
                    bodies.extend(last);
                    Value::Array(bodies)
                }
            },
        }
    }
}

/// Why nothing of a request is carried out.
#[derive(Debug)]
pub enum GraphqlRefusal {
    /// It is no request.
    Malformed(Failure),
    /// It is one, whose document is refused. Nobody has to be signed in to hear why if it is `open`.
    Document { failure: Failure, open: bool },
}

impl GraphqlRefusal {
    pub fn failure(&self) -> &Failure {
        match self {
            Self::Malformed(failure) | Self::Document { failure, .. } => failure,
        }
    }

    /// Whether it only would have signed somebody in.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Document { open: true, .. })
    }
}

/// The documents of a body, and whether they come as several.
fn given_documents(body: &[u8]) -> Result<(bool, Vec<GivenDocument>), Failure> {
    let given: Value = serde_json::from_slice(body).map_err(|error| Failure::not_json(&error))?;
    let (several, documents) = match given {
        Value::Array(documents) => (true, documents),
        one => (false, vec![one]),
    };
    if documents.is_empty() || documents.len() > MOST_DOCUMENTS {
        let words = format!("give 1 to {MOST_DOCUMENTS} documents");
        return Err(Failure::field("body", words));
    }
    let mut read = Vec::new();
    for document in documents {
        let document: GivenDocument = serde_json::from_value(document)
            .map_err(|error| Failure::field("body", error.to_string()))?;
        if !matches!(document.variables, None | Some(Value::Object(_))) {
            return Err(Failure::field("variables", "this is not an object"));
        }
        read.push(document);
    }
    Ok((several, read))
}

/// A document that somebody sends over a socket.
pub(crate) struct LiveDocument {
    pub(crate) request: Request,
    /// How many fields it has at its root.
    pub(crate) root_fields: usize,
    /// Whether it changes something and is answered once.
    pub(crate) changes: bool,
}

/// Reads one. Questions about the schema are for requests, which have a limit of their own.
pub(crate) fn checked(given: Request) -> Result<LiveDocument, Failure> {
    let read = cost::read(&given.query, false)?;
    let variables = serde_json::to_value(&given.variables).unwrap_or_default();
    let request = request(given.query, given.operation_name, variables, read.document)?;
    Ok(LiveDocument {
        root_fields: read.roots.len(),
        changes: read.changes && !read.watches,
        request,
    })
}

fn request(
    query: String,
    operation_name: Option<String>,
    variables: Value,
    document: ExecutableDocument,
) -> Result<Request, Failure> {
    let variables = match variables {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::Object(variables) => Value::Object(variables),
        _ => return Err(Failure::field("variables", "this is not an object")),
    };
    storable_value("variables", &variables)?;
    ensure_given(&document, operation_name.as_deref(), &variables)?;
    let mut request = Request::new(query).variables(Variables::from_json(variables));
    // Read once is enough.
    request.set_parsed_query(document);
    Ok(match operation_name {
        Some(name) => request.operation_name(name),
        None => request,
    })
}

fn storable_value(field: &str, value: &Value) -> Result<(), Failure> {
    match value {
        Value::String(text) => storable_text(field, text),
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| storable_value(field, item)),
        Value::Object(entries) => entries.iter().try_for_each(|(name, item)| {
            storable_text(field, name)?;
            storable_value(name, item)
        }),
        _ => Ok(()),
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct GraphqlAnswer {
    pub status: u16,
    /// It was a request, and nothing of it was carried out.
    pub refused: bool,
    pub body: Value,
}

impl GraphqlAnswer {
    /// A request that was not carried out.
    pub fn refusal(refusal: &GraphqlRefusal, trace_id: TraceId) -> Self {
        let failure = refusal.failure();
        Self {
            status: nimbus_control_app::Problem::of(failure).status,
            refused: matches!(refusal, GraphqlRefusal::Document { .. }),
            body: json!({"errors": [refused_document(failure, trace_id)]}),
        }
    }
}
