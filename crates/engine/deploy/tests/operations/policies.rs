//! Policy packs.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt as _;
use nimbus_engine_ports::{
    AnalyzeRequest, Analyzer, AnalyzerError, AnalyzerResource, EnforcementLevel, EngineEvent,
    PolicyDiagnostic, PolicyInfo, Remediation,
};

use super::support::*;
use nimbus_engine_deploy::DeployError;

/// Judges resources whose input `x` is `bad`, at a level; may correct it first.
struct Pack {
    info: PolicyInfo,
    level: EnforcementLevel,
    corrects: bool,
    judges_resources: bool,
    judges_stack: bool,
    crashes: bool,
}

fn pack(level: EnforcementLevel) -> Pack {
    let info = PolicyInfo {
        name: "pack".to_owned(),
        version: "1".to_owned(),
        ..PolicyInfo::default()
    };
    Pack {
        info,
        level,
        corrects: false,
        judges_resources: true,
        judges_stack: false,
        crashes: false,
    }
}

impl Pack {
    fn finding(&self, urn: Option<nimbus_engine_model::Urn>) -> PolicyDiagnostic {
        PolicyDiagnostic {
            policy: "no-bad".to_owned(),
            pack: self.info.name.clone(),
            pack_version: self.info.version.clone(),
            message: "x is bad".to_owned(),
            enforcement: self.level,
            urn,
        }
    }
}

#[async_trait]
impl Analyzer for Pack {
    fn info(&self) -> &PolicyInfo {
        &self.info
    }

    async fn analyze(
        &self,
        request: &AnalyzeRequest,
    ) -> Result<Vec<PolicyDiagnostic>, AnalyzerError> {
        if self.crashes {
            let message = "it crashed".to_owned();
            return Err(AnalyzerError {
                pack: "pack".to_owned(),
                message,
            });
        }
        let bad = self.judges_resources && request.properties.get("x") == Some(&"bad".into());
        Ok(if bad {
            vec![self.finding(None)]
        } else {
            Vec::new()
        })
    }

    async fn remediate(&self, request: &AnalyzeRequest) -> Result<Vec<Remediation>, AnalyzerError> {
        let bad = request.properties.get("x") == Some(&"bad".into());
        if !self.corrects || !bad {
            return Ok(Vec::new());
        }
        assert_eq!(request.provider.as_ref().unwrap().name, "default");
        let mut properties = request.properties.clone();
        properties.insert("x".to_owned(), "corrected".into());
        Ok(vec![Remediation {
            policy: "no-bad".to_owned(),
            pack: "pack".to_owned(),
            pack_version: "1".to_owned(),
            properties: Some(properties),
            diagnostic: String::new(),
        }])
    }

    async fn analyze_stack(
        &self,
        resources: &[AnalyzerResource],
    ) -> Result<Vec<PolicyDiagnostic>, AnalyzerError> {
        let bad = resources
            .iter()
            .filter(|r| self.judges_stack && r.resource.properties.get("x") == Some(&"bad".into()));
        Ok(bad
            .map(|r| self.finding(Some(r.resource.urn.clone())))
            .collect())
    }

    async fn cancel(&self) {}
}

async fn one(rig: &mut AnsweringRig) -> RigRun {
    rig.up(|m| {
        async move {
            m.resource("good", |goal| set(goal, "x", "good")).await?;
            m.resource("a", |goal| set(goal, "x", "bad")).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

fn violations(run: &RigRun) -> Vec<EnforcementLevel> {
    let found = run.events.iter().filter_map(|event| match event {
        EngineEvent::PolicyViolation(violation) => Some(violation.enforcement),
        _ => None,
    });
    found.collect()
}

#[tokio::test]
async fn a_mandatory_violation_stops_before_the_resource_changes() {
    let mut rig = AnsweringRig::new();
    rig.analyzers = vec![Arc::new(pack(EnforcementLevel::Mandatory))];
    let run = one(&mut rig).await;
    assert!(matches!(
        run.error(),
        DeployError::PolicyViolated { violations: 1 }
    ));
    assert_eq!(rig.take_calls(), ["create good"]);
    assert!(rig.find("a").is_none());
}

#[tokio::test]
async fn an_advice_is_told_and_nothing_more() {
    let mut rig = AnsweringRig::new();
    rig.analyzers = vec![
        Arc::new(pack(EnforcementLevel::Advisory)),
        Arc::new(pack(EnforcementLevel::Disabled)),
    ];
    let run = one(&mut rig).await.ok();
    assert_eq!(violations(&run), [EnforcementLevel::Advisory]);
}

#[tokio::test]
async fn a_correction_is_what_gets_made_and_no_violation_is_left() {
    let mut rig = AnsweringRig::new();
    let correcting = Pack {
        corrects: true,
        ..pack(EnforcementLevel::Remediate)
    };
    rig.analyzers = vec![Arc::new(correcting)];
    let run = one(&mut rig).await.ok();
    assert_eq!(rig.resource("a").inputs["x"], "corrected".into());
    assert!(violations(&run).is_empty());
    assert!(
        run.events
            .iter()
            .any(|e| matches!(e, EngineEvent::PolicyRemediation { .. }))
    );
    assert!(
        run.events
            .iter()
            .any(|e| matches!(e, EngineEvent::PolicyLoaded { .. }))
    );
}

#[tokio::test]
async fn what_is_wrong_after_remediation_is_mandatory() {
    let mut rig = AnsweringRig::new();
    rig.analyzers = vec![Arc::new(pack(EnforcementLevel::Remediate))];
    let run = one(&mut rig).await;
    assert_eq!(violations(&run), [EnforcementLevel::Mandatory]);
    run.error();
}

#[tokio::test]
async fn a_preview_shows_all_violations_and_fails() {
    let mut rig = AnsweringRig::new();
    rig.analyzers = vec![Arc::new(pack(EnforcementLevel::Mandatory))];
    let run = rig
        .preview(|m| {
            async move {
                for name in ["a", "b"] {
                    m.resource(name, |goal| set(goal, "x", "bad")).await?;
                }
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await;
    assert_eq!(violations(&run).len(), 2);
    assert!(matches!(run.error(), DeployError::PolicyViolated { .. }));
    rig.analyzers.clear();
}

#[tokio::test]
async fn the_whole_stack_is_judged_at_the_end_by_its_outputs() {
    let mut rig = AnsweringRig::new();
    let judge = Pack {
        judges_stack: true,
        ..pack(EnforcementLevel::Advisory)
    };
    rig.analyzers = vec![Arc::new(judge)];
    let run = one(&mut rig).await.ok();
    assert_eq!(
        violations(&run).len(),
        2,
        "once for the resource, once in the stack"
    );
    let strict = Pack {
        judges_stack: true,
        judges_resources: false,
        ..pack(EnforcementLevel::Mandatory)
    };
    rig.analyzers = vec![Arc::new(strict)];
    let run = one(&mut rig).await;
    assert!(matches!(
        run.error(),
        DeployError::PolicyViolated { violations: 1 }
    ));
}

#[tokio::test]
async fn a_pack_that_crashes_is_not_a_pack_that_agrees() {
    let mut rig = AnsweringRig::new();
    let crashing = Pack {
        crashes: true,
        ..pack(EnforcementLevel::Advisory)
    };
    rig.analyzers = vec![Arc::new(crashing)];
    let run = one(&mut rig).await;
    assert!(matches!(run.error(), DeployError::PolicyFailed { .. }));
    assert!(rig.take_calls().is_empty());
}
