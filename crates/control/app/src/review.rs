//! What somebody who decides on a plan should know: what to read first, whether the plan still holds, what a failure would
//! leave; and who has looked at what.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{
    EnvironmentKey, ListPage, MarkCursor, SinceThen, StoredDeployment, StoredMark, StoredRun,
};
use nimbus_control_wire::{
    OneWayStep, PlanReview, PlanRisk, ReviewMark, RollbackForecast, RunUnit, SealItem, UnitResource,
};
use nimbus_core::{ErrorCode, TenantId};
use serde_json::json;
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::run_fold::RunFold;
use crate::run_view::folded;

/// Marks of one person on one environment; as many units and risks as a plan has, and plans before it had.
const MOST_MARKS: i64 = 20_000;
/// Types that hold what cannot be made again.
const DATA: &[&str] = &[
    ":rds/",
    ":dynamodb/",
    ":efs/",
    ":ebs/",
    ":elasticache/",
    ":docdb/",
    ":redshift/",
    ":s3/",
    ":sqs/",
    "database",
    "bucket",
    "volume",
];
/// Types that say who may do or reach what.
const ACCESS: &[&str] = &[":iam/", "policy", "securitygroup", "firewall", "networkacl"];
/// Everybody.
const ANYWHERE: &[&str] = &["0.0.0.0/0", "::/0"];

impl App {
    pub async fn run_review(&self, call: &Call, tenant: TenantId, run: Uuid) -> Result<PlanReview> {
        let permit = self.permit(call, operation::RUN_REVIEW, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = self.run_seen(tx, call, &permit, run).await?;
                let fold = folded(tx, &row).await?;
                let deployment = tx.deployment_get(&row.deployment).await?;
                let since = tx.since_plan(&row).await?;
                self.audit(tx, &call.context, permit.record().on(run))
                    .await?;
                Ok(PlanReview {
                    risks: risks(&fold),
                    seal: seal(&row, &deployment, &since, &fold),
                    forecast: forecast(&fold),
                    seq: fold.seq,
                })
            })
            .await
    }

    /// Marks on plans of the run's environment: one holds where its digest is that of what the plan would change.
    pub async fn mark_list(
        &self,
        call: &Call,
        tenant: TenantId,
        run: Uuid,
        page: ListPage<MarkCursor>,
    ) -> Result<Vec<ReviewMark>> {
        let permit = self.permit(call, operation::LIST_MARKS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = self.run_seen(tx, call, &permit, run).await?;
                let marks = tx.mark_list(&environment_of(&row), &page).await?;
                self.audit(tx, &call.context, permit.record().on(run))
                    .await?;
                Ok(marks.into_iter().map(mark_of).collect())
            })
            .await
    }

    /// Notes that the caller has looked at something, or takes that back.
    pub async fn mark_set(
        &self,
        call: &Call,
        tenant: TenantId,
        run: Uuid,
        item: &str,
        digest: Option<&str>,
    ) -> Result<()> {
        let operation: Operation = match digest {
            Some(_) => operation::SET_MARK,
            None => operation::REMOVE_MARK,
        };
        let permit = self.permit(call, operation, tenant).await?;
        if item.is_empty() || item.len() > 300 {
            return Err(Failure::field("item", "give up to 300 characters"));
        }
        if let Some(digest) = digest
            && (digest.is_empty() || digest.len() > 100)
        {
            return Err(Failure::field("digest", "give up to 100 characters"));
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = self.run_seen(tx, call, &permit, run).await?;
                let (key, person) = (environment_of(&row), call.who.user);
                match digest {
                    Some(digest) => {
                        if tx.mark_count(&key, person).await? >= MOST_MARKS {
                            let message = "there are too many marks of yours here";
                            return Err(Failure::new(ErrorCode::QUOTA_EXCEEDED, message));
                        }
                        tx.mark_put(&key, item, person, digest).await?;
                    }
                    None => tx.mark_delete(&key, item, person).await?,
                }
                let record = permit.record().on(run).after(json!({"item": item}));
                self.audit(tx, &call.context, record).await
            })
            .await
    }
}

fn environment_of(run: &StoredRun) -> EnvironmentKey {
    EnvironmentKey {
        deployment: run.deployment.clone(),
        environment: run.environment.clone(),
        rehearsal: run.rehearsal,
    }
}

fn mark_of(stored: StoredMark) -> ReviewMark {
    let at: jiff::Timestamp = stored.marked_at.into();
    ReviewMark {
        item: stored.item,
        digest: stored.digest,
        person: stored.person.to_string(),
        name: stored.email,
        at: at.to_string(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepKind {
    Create,
    Update,
    Replace,
    Delete,
    Other,
}

/// A replacement is three steps; the first of them stands for it.
fn kind(step: &UnitResource) -> StepKind {
    match step.op.as_str() {
        "create" | "import" => StepKind::Create,
        "update" => StepKind::Update,
        "replace" => StepKind::Replace,
        "delete" => StepKind::Delete,
        _ => StepKind::Other,
    }
}

fn fits(words: &[&str], type_: &str) -> bool {
    let type_ = type_.to_lowercase();
    words.iter().any(|word| type_.contains(word))
}

fn named(steps: &[&UnitResource]) -> String {
    let names: Vec<_> = steps
        .iter()
        .take(3)
        .map(|step| step.name.as_str())
        .collect();
    match steps.len() {
        0..=3 => names.join(", "),
        count => format!("{} and {} more", names.join(", "), count - 3),
    }
}

fn many(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// What to read first, worst first. A kind of risk is told once for each unit.
fn risks(fold: &RunFold) -> Vec<PlanRisk> {
    let mut ranked: Vec<(u8, PlanRisk)> = Vec::new();
    let mut unknown = (0, None);
    for unit in fold.units() {
        unit_risks(&unit, fold, &mut ranked);
        for step in fold.resources(&unit.name) {
            let count = step.properties.iter().filter(|row| row.unknown).count();
            if count > 0 {
                unknown.0 += count;
                unknown.1.get_or_insert_with(|| unit.name.clone());
            }
        }
    }
    if let (count, Some(first)) = unknown {
        let be = if count == 1 { "is" } else { "are" };
        let risk = PlanRisk {
            key: "risk:unknown".to_owned(),
            kind: "unknown".to_owned(),
            unit: first,
            title: format!("{} {be} not known yet.", many(count, "value")),
            about: "They come from resources that this run creates, and are marked where they are used."
                .to_owned(),
            reversible: true,
            count: count as u64,
        };
        ranked.push((9, risk));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, risk)| risk).collect()
}

fn unit_risks(unit: &RunUnit, fold: &RunFold, ranked: &mut Vec<(u8, PlanRisk)>) {
    let name = &unit.name;
    let steps: Vec<&UnitResource> = fold.resources(name).collect();
    let of = |wanted: &[StepKind]| -> Vec<&UnitResource> {
        let fitting = steps.iter().filter(|step| wanted.contains(&kind(step)));
        fitting.copied().collect()
    };
    let mut add = |rank: u8, word: &str, title: String, about: String, found: usize, back: bool| {
        let risk = PlanRisk {
            key: format!("risk:{name}:{word}"),
            kind: word.to_owned(),
            unit: name.clone(),
            title,
            about,
            reversible: back,
            count: found as u64,
        };
        ranked.push((rank, risk));
    };
    if unit.status == "failed" {
        let said = unit.message.as_deref().unwrap_or_default();
        let first = said.lines().next().unwrap_or_default().to_owned();
        add(
            0,
            "not_planned",
            format!("{name} could not be planned."),
            first,
            1,
            true,
        );
    }
    let deleted = of(&[StepKind::Delete]);
    let replaced = of(&[StepKind::Replace]);
    let mut lost = deleted.clone();
    lost.extend(&replaced);
    lost.retain(|step| fits(DATA, &step.type_));
    if !lost.is_empty() {
        let about = format!("{}: what is in there is not in the new one.", named(&lost));
        add(
            1,
            "data",
            format!("Data goes in {name}."),
            about,
            lost.len(),
            false,
        );
    }
    if !deleted.is_empty() {
        let title = format!("{} would be deleted.", many(deleted.len(), "resource"));
        add(
            2,
            "delete",
            title,
            format!("{} in {name}.", named(&deleted)),
            deleted.len(),
            false,
        );
    }
    if !replaced.is_empty() {
        let mut forced: Vec<&str> = replaced
            .iter()
            .flat_map(|step| step.properties.iter().filter(|row| row.replaces))
            .map(|row| row.path.as_str())
            .collect();
        forced.sort_unstable();
        forced.dedup();
        forced.truncate(3);
        let why = match forced.is_empty() {
            true => String::new(),
            false => format!(" Because of {}.", forced.join(", ")),
        };
        let title = format!("{} would be replaced.", many(replaced.len(), "resource"));
        let about = format!("{} in {name}.{why}", named(&replaced));
        add(3, "replace", title, about, replaced.len(), false);
    }
    let opened: Vec<_> = steps.iter().copied().filter(|step| opens(step)).collect();
    if !opened.is_empty() {
        let about = format!("{}: reachable from everywhere.", named(&opened));
        add(
            4,
            "public",
            format!("{name} opens to the network."),
            about,
            opened.len(),
            true,
        );
    }
    let mut access = of(&[StepKind::Update, StepKind::Replace, StepKind::Delete]);
    access.retain(|step| fits(ACCESS, &step.type_));
    if !access.is_empty() {
        let about = format!("{}.", named(&access));
        add(
            5,
            "access",
            format!("Access changes in {name}."),
            about,
            access.len(),
            true,
        );
    }
}

/// Whether a step lets everybody in where it did not before.
fn opens(step: &UnitResource) -> bool {
    if !matches!(
        kind(step),
        StepKind::Create | StepKind::Update | StepKind::Replace
    ) {
        return false;
    }
    // Where packets may go out to is not who gets in.
    let inward = |path: &str| {
        !path.to_lowercase().contains("egress") && !path.to_lowercase().contains("route")
    };
    step.properties
        .iter()
        .filter(|row| inward(&row.path))
        .any(|row| {
            let has = |side: &Option<String>| {
                let text = side.as_deref().unwrap_or_default();
                ANYWHERE.iter().any(|word| text.contains(word))
            };
            let public =
                row.path.ends_with("publiclyAccessible") && row.new.as_deref() == Some("true");
            (has(&row.new) && !has(&row.old) && fits(ACCESS, &step.type_)) || public
        })
}

/// Units that would go back, last first, and steps that have no way back in place.
fn forecast(fold: &RunFold) -> RollbackForecast {
    let mut units = Vec::new();
    let mut one_way = Vec::new();
    for unit in fold.units() {
        let mut changes = false;
        for step in fold.resources(&unit.name) {
            let word = match kind(step) {
                StepKind::Other => continue,
                StepKind::Create | StepKind::Update => None,
                StepKind::Replace => Some("replace"),
                StepKind::Delete => Some("delete"),
            };
            changes = true;
            if let Some(op) = word {
                one_way.push(OneWayStep {
                    unit: unit.name.clone(),
                    urn: step.urn.clone(),
                    type_: step.type_.clone(),
                    name: step.name.clone(),
                    op: op.to_owned(),
                    data: fits(DATA, &step.type_),
                });
            }
        }
        if changes {
            units.push((unit.layer, unit.name));
        }
    }
    units.sort_by_key(|(layer, _)| std::cmp::Reverse(*layer));
    one_way.sort_by_key(|step| !step.data);
    RollbackForecast {
        units: units.into_iter().map(|(_, name)| name).collect(),
        one_way,
    }
}

fn seal(
    plan: &StoredRun,
    deployment: &StoredDeployment,
    since: &SinceThen,
    fold: &RunFold,
) -> Vec<SealItem> {
    let item = |kind: &str, name: &str, proof: String, moved: Option<String>| SealItem {
        kind: kind.to_owned(),
        name: name.to_owned(),
        proof,
        moved,
    };
    let began: jiff::Timestamp = plan.began_at.unwrap_or(plan.queued_at).into();
    let saved: jiff::Timestamp = deployment.updated_at.into();
    let revision = deployment.revision;
    let steps: u64 = fold
        .units()
        .iter()
        .flat_map(|unit| fold.resources(&unit.name))
        .filter(|step| kind(step) != StepKind::Other)
        .count() as u64;
    let environment = &plan.environment;
    vec![
        item(
            "programs",
            "Programs",
            match since.files {
                0 => "as shipped".to_owned(),
                count => format!("{count} files"),
            },
            (since.files_changed > 0).then(|| {
                let changed = usize::try_from(since.files_changed).unwrap_or_default();
                format!(
                    "{} changed after this plan was made.",
                    many(changed, "file")
                )
            }),
        ),
        item(
            "manifest",
            "Manifest",
            format!("revision {revision}"),
            (saved > began)
                .then(|| format!("It was saved as revision {revision} after this plan was made.")),
        ),
        item(
            "state",
            "Start state",
            match since.last_run {
                Some(number) => format!("after R{number:04}"),
                None => "empty".to_owned(),
            },
            since.run_since.map(|number| {
                format!("R{number:04} ran or runs in {environment} since this plan was made.")
            }),
        ),
        item("steps", "Planned steps", steps.to_string(), None),
        item(
            "newest",
            "Newest plan",
            format!("R{:04}", plan.number),
            since
                .newer_plan
                .map(|number| format!("R{number:04} is a newer plan of the same environment.")),
        ),
    ]
}

#[cfg(test)]
mod tests;
