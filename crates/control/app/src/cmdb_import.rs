//! Imports of configuration items: checked whole, then written in one transaction, or not at all. Each try is recorded.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_catalog::value_problems;
use nimbus_control_auth::operation;
use nimbus_control_cmdb::{
    ImportFormat, ImportLine, ImportProblem, KnownItem, first_problems, read_import,
};
use nimbus_control_store::{
    CheckedImport, Compartment, ImportCounts, ListPage, NewImport, RowCursor, StoredClass,
    StoredImport, TenantTx,
};
use nimbus_control_wire::{ImportItems, LineProblem};
use nimbus_core::{Error, ErrorCode, TenantId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::cmdb::allows;
use crate::failure::{Failure, FieldProblem, Result};

/// What ends an import: the file is wrong, or something else is.
enum ImportEnd {
    Wrong(Vec<ImportProblem>, usize),
    Failed(Failure),
}

impl From<nimbus_control_store::StoreError> for ImportEnd {
    fn from(error: nimbus_control_store::StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl App {
    /// Takes all items of a file, or none. A file that is wrong is told with its lines, and kept in the list of imports.
    pub async fn item_import(
        &self,
        call: &Call,
        tenant: TenantId,
        input: ImportItems,
    ) -> Result<StoredImport> {
        let permit = self.permit(call, operation::IMPORT_ITEMS, tenant).await?;
        let Some(format) = ImportFormat::parse(&input.format) else {
            return Err(Failure::field("format", "give jsonl or csv"));
        };
        let record = NewImport {
            format: match format {
                ImportFormat::JsonLines => "jsonl",
                ImportFormat::Csv => "csv",
            },
            status: "succeeded",
            dry_run: input.dry_run,
            counts: ImportCounts::default(),
            problems: json!([]),
            problem_count: 0,
            requested_by: call.who.user.into(),
        };
        let lines = match read_import(format, &input.content) {
            Ok(lines) => lines,
            Err((problems, all)) => {
                return Err(self.wrong(&permit, record, problems, all).await?);
            }
        };
        let written = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                self.take(tx, call, &permit, lines, record.clone()).await
            })
            .await;
        match written {
            Ok(job) => Ok(job),
            Err(ImportEnd::Failed(failure)) => Err(failure),
            Err(ImportEnd::Wrong(problems, all)) => {
                Err(self.wrong(&permit, record, problems, all).await?)
            }
        }
    }

    async fn take(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        permit: &Permit,
        lines: Vec<ImportLine>,
        mut record: NewImport,
    ) -> Result<StoredImport, ImportEnd> {
        let known = known_items(tx, &lines).await?;
        let items = checked(tx, lines, &known).await?;
        if record.dry_run {
            record.counts = forecast(&items, &known);
        } else {
            let by = call.who.user.into();
            record.counts = tx.items_import(&items, &known, by).await?;
        }
        let job = tx.import_add(&record).await?;
        let counts = serde_json::to_value(record.counts).unwrap_or_default();
        let entry = permit
            .record()
            .on(job.id)
            .after(json!({"format": job.format, "dry_run": job.dry_run, "counts": counts}));
        let audited = self.audit(tx, &call.context, entry).await;
        audited.map_err(ImportEnd::Failed)?;
        Ok(job)
    }

    /// Records an import that was refused, and says why.
    async fn wrong(
        &self,
        permit: &Permit,
        record: NewImport,
        problems: Vec<ImportProblem>,
        all: usize,
    ) -> Result<Failure> {
        let told: Vec<LineProblem> = problems
            .iter()
            .map(|problem| LineProblem {
                line: problem.line,
                message: problem.message.clone(),
            })
            .collect();
        let record = NewImport {
            status: "failed",
            problems: serde_json::to_value(&told).unwrap_or_else(|_| json!([])),
            problem_count: i32::try_from(all).unwrap_or(i32::MAX),
            ..record
        };
        let tenant = permit.resource.tenant;
        let kept = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| tx.import_add(&record).await);
        kept.await?;
        Ok(import_failure(&problems, all))
    }

    /// Newest first.
    pub async fn import_list(
        &self,
        call: &Call,
        tenant: TenantId,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<StoredImport>> {
        let permit = self.permit(call, operation::LIST_IMPORTS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.import_list(&page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }
}

fn import_failure(problems: &[ImportProblem], all: usize) -> Failure {
    let first = problems.first();
    let first = first.map_or_else(String::new, |one| {
        format!("line {}: {}", one.line, one.message)
    });
    let message = match all {
        0 | 1 => first,
        more => format!("{first}; {} more lines are wrong", more - 1),
    };
    let error = Error::new(ErrorCode::ITEMS_INVALID, message)
        .with_help("nothing was imported; correct these lines and import the file again");
    Failure {
        details: problems
            .iter()
            .map(|problem| FieldProblem {
                field: format!("line {}", problem.line).into(),
                message: problem.message.clone(),
            })
            .collect(),
        ..error.into()
    }
}

/// Items that the file names: its own, and those that it relates its own to.
async fn known_items(tx: &mut TenantTx, lines: &[ImportLine]) -> Result<Vec<KnownItem>, ImportEnd> {
    let own = lines.iter().map(|line| line.key.clone());
    let related = lines.iter().flat_map(|line| &line.relations);
    let keys: BTreeSet<String> = own
        .chain(related.map(|relation| relation.target.clone()))
        .collect();
    let keys: Vec<String> = keys.into_iter().collect();
    Ok(tx.items_of_keys(&keys).await?)
}

/// What only the database knows: classes, compartments, and whom lines relate to.
async fn checked(
    tx: &mut TenantTx,
    lines: Vec<ImportLine>,
    known: &[KnownItem],
) -> Result<Vec<CheckedImport>, ImportEnd> {
    let names: BTreeSet<String> = lines
        .iter()
        .map(|line| line.content.class.clone())
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    let classes = tx.classes_named(&names).await?;
    let classes: BTreeMap<&str, &StoredClass> =
        classes.iter().map(|one| (one.name.as_str(), one)).collect();
    let compartments = match lines.iter().any(|line| line.compartment.is_some()) {
        true => paths(&tx.compartment_list().await?),
        false => BTreeMap::new(),
    };
    let own = lines.iter().map(|line| line.key.as_str());
    let there = known.iter().map(|item| item.urn.as_str());
    let keys: BTreeSet<String> = own.chain(there).map(str::to_owned).collect();
    let mut problems = Vec::new();
    let mut items = Vec::with_capacity(lines.len());
    for line in lines {
        let mut wrong = |message: String| problems.push(ImportProblem::new(line.line, message));
        match classes.get(line.content.class.as_str()) {
            None => wrong(format!("there is no class `{}`", line.content.class)),
            Some(class) => class_problems(class, &line)
                .into_iter()
                .for_each(&mut wrong),
        }
        for relation in &line.relations {
            if !keys.contains(&relation.target) {
                wrong(format!(
                    "there is no item with the key `{}`",
                    relation.target
                ));
            }
        }
        let compartment = line.compartment.as_ref().and_then(|path| {
            let found = compartments.get(path).copied();
            if found.is_none() {
                wrong(format!("there is no compartment `{path}`"));
            }
            found
        });
        items.push(CheckedImport { line, compartment });
    }
    if problems.is_empty() {
        return Ok(items);
    }
    let (problems, all) = first_problems(problems);
    Err(ImportEnd::Wrong(problems, all))
}

fn class_problems(class: &StoredClass, line: &ImportLine) -> Vec<String> {
    let mut problems = Vec::new();
    let schema = class.attributes.as_object();
    if schema.is_some_and(|schema| !schema.is_empty()) {
        let value = Value::Object(line.content.attributes.values.clone());
        let found = value_problems("attributes", &class.attributes, &value);
        problems.extend(found.into_iter().map(|problem| problem.to_string()));
    }
    for relation in &line.relations {
        if !allows(&class.relationships, &relation.relationship) {
            let word = &relation.relationship;
            problems.push(format!(
                "items of the class {} begin no `{word}`",
                class.name
            ));
        }
    }
    problems
}

/// Compartments by their names from the root down.
fn paths(all: &[Compartment]) -> BTreeMap<String, Uuid> {
    let by_id: BTreeMap<Uuid, &Compartment> = all.iter().map(|one| (one.id, one)).collect();
    let path = |one: &Compartment| {
        let mut names = vec![one.name.as_str()];
        let mut above = one.parent_id;
        // A tree has no circle; one that a database was given by hand ends here all the same.
        while let Some(parent) = above.and_then(|id| by_id.get(&id))
            && names.len() < all.len()
        {
            names.push(&parent.name);
            above = parent.parent_id;
        }
        names.reverse();
        names.join("/")
    };
    all.iter().map(|one| (path(one), one.id)).collect()
}

/// What an import would do.
fn forecast(items: &[CheckedImport], known: &[KnownItem]) -> ImportCounts {
    let recorded: BTreeMap<&str, &KnownItem> =
        known.iter().map(|one| (one.urn.as_str(), one)).collect();
    let mut counts = ImportCounts::default();
    for item in items {
        let line = &item.line;
        match recorded.get(line.key.as_str()) {
            None if line.active => counts.created += 1,
            Some(known) if line.active && !known.active => counts.created += 1,
            None => counts.decommissioned += 1,
            Some(known) if known.active && !line.active => counts.decommissioned += 1,
            Some(known) if known.digest != line.content.digest() => counts.updated += 1,
            Some(_) => counts.unchanged += 1,
        }
    }
    counts
}
