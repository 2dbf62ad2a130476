//! Policies look at resources before anything happens to them.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::PropertyValue;
use nimbus_engine_ports::{
    AnalyzeRequest, Analyzer, AnalyzerError, AnalyzerResource, EnforcementLevel, EngineEvent,
    PolicyDiagnostic, PolicyInfo, Remediation,
};
use nimbus_engine_testing::{Rig, RigRun, ScriptedResource};

use crate::{A, assert_ok, assert_steps, program};

/// Objects to `foo` being `bad`, in one of three ways.
struct Pack {
    info: PolicyInfo,
    level: EnforcementLevel,
}

fn pack(level: EnforcementLevel) -> Arc<dyn Analyzer> {
    let info = PolicyInfo {
        name: "pack".to_owned(),
        version: "1.0.0".to_owned(),
        supports_remediation: level == EnforcementLevel::Remediate,
    };
    Arc::new(Pack { info, level })
}

fn is_bad(request: &AnalyzeRequest) -> bool {
    request.properties.get("foo") == Some(&PropertyValue::from("bad"))
}

impl Pack {
    fn complaint(&self, request: &AnalyzeRequest) -> PolicyDiagnostic {
        PolicyDiagnostic {
            policy: "no-bad".to_owned(),
            pack: "pack".to_owned(),
            pack_version: "1.0.0".to_owned(),
            message: "foo is bad".to_owned(),
            enforcement: self.level,
            urn: Some(request.urn.clone()),
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
        let complains = is_bad(request) && self.level != EnforcementLevel::Remediate;
        Ok(if complains {
            vec![self.complaint(request)]
        } else {
            Vec::new()
        })
    }

    async fn remediate(&self, request: &AnalyzeRequest) -> Result<Vec<Remediation>, AnalyzerError> {
        if !is_bad(request) || self.level != EnforcementLevel::Remediate {
            return Ok(Vec::new());
        }
        let mut properties = request.properties.clone();
        properties.insert("foo".to_owned(), PropertyValue::from("good"));
        Ok(vec![Remediation {
            policy: "no-bad".to_owned(),
            pack: "pack".to_owned(),
            pack_version: "1.0.0".to_owned(),
            properties: Some(properties),
            diagnostic: String::new(),
        }])
    }

    async fn analyze_stack(
        &self,
        resources: &[AnalyzerResource],
    ) -> Result<Vec<PolicyDiagnostic>, AnalyzerError> {
        let many = resources.iter().filter(|r| r.resource.type_ == A).count() > 2;
        Ok(match resources.first() {
            Some(first) if many => vec![self.complaint(&first.resource)],
            _ => Vec::new(),
        })
    }

    async fn cancel(&self) {}
}

fn violations(run: &RigRun) -> usize {
    run.events
        .iter()
        .filter(|event| matches!(event, EngineEvent::PolicyViolation(_)))
        .count()
}

fn bad() -> nimbus_engine_testing::ScriptedProgram {
    program([ScriptedResource::custom(A, "a").prop("foo", "bad")])
}

#[tokio::test]
async fn a_mandatory_violation_stops_before_any_change() {
    let mut rig = Rig::new();
    rig.analyzers = vec![pack(EnforcementLevel::Mandatory)];
    let run = rig.up(&bad()).await;
    assert!(!run.succeeded());
    assert_eq!(violations(&run), 1);
    assert!(rig.cloud.log().is_empty());
    assert!(
        !rig.preview(&bad()).await.succeeded(),
        "a preview says so too"
    );
}

#[tokio::test]
async fn an_advisory_violation_is_told_and_no_more() {
    let mut rig = Rig::new();
    rig.analyzers = vec![pack(EnforcementLevel::Advisory)];
    let run = rig.up(&bad()).await;
    assert_ok(&run);
    assert_eq!(violations(&run), 1);
    assert_eq!(rig.cloud.ids().len(), 1);
}

#[tokio::test]
async fn a_remediation_changes_the_inputs() {
    let mut rig = Rig::new();
    rig.analyzers = vec![pack(EnforcementLevel::Remediate)];
    let run = rig.up(&bad()).await;
    assert_ok(&run);
    assert_eq!(
        rig.cloud.get("id-1").unwrap().inputs["foo"],
        PropertyValue::from("good")
    );
    assert_steps(&rig.up(&bad()).await, &[]);
}

#[tokio::test]
async fn a_mandatory_violation_of_the_whole_stack_fails_the_run() {
    let mut rig = Rig::new();
    rig.analyzers = vec![pack(EnforcementLevel::Mandatory)];
    let three =
        program((0..3).map(|i| ScriptedResource::custom(A, &format!("r{i}")).prop("foo", "fine")));
    assert!(!rig.preview(&three).await.succeeded());
}
