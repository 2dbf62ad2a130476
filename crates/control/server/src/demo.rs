//! An installation to look at: a tenant, people, and a deployment of the shipped library that is being rehearsed.
//!
//! Everything goes through the use cases that everybody uses, as the first administrator, so that what the audit trail
//! says about it is true.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nimbus_control_app::{
    App, AssignmentInput, Call, DeploymentInput, Failure, RequestContext, RunInput, SetupInput,
    TenantInput, UserInput, operation,
};
use nimbus_core::{Error, ErrorCode, Result, TenantId, TraceId};
use serde_json::json;

const TENANT: &str = "demo";
const DEPLOYMENT: &str = "D1DEMO";
const ENVIRONMENT: &str = "dev";
/// Runs the installation; belongs to the operator's tenant.
const OPERATOR: &str = "owner@nimbus.example";
/// Who is there, and what they may do in the tenant.
const PEOPLE: [(&str, &str, &str); 4] = [
    ("ada@demo.example", "Ada Admin", "admin"),
    ("dev@demo.example", "Dev Developer", "developer"),
    ("olga@demo.example", "Olga Operator", "operator"),
    ("vic@demo.example", "Vic Viewer", "viewer"),
];

/// What was made, for whoever is to sign in.
#[derive(Debug)]
pub struct DemoSite {
    pub tenant: &'static str,
    /// Address and role of everybody; the first one may do everything in the tenant.
    pub people: Vec<(&'static str, &'static str)>,
    /// Who runs the installation.
    pub operator: &'static str,
    /// The same for all of them. Shown once: it is kept nowhere.
    pub password: Option<String>,
    pub deployment: &'static str,
    pub environment: &'static str,
}

/// Fills an installation that nobody has set up yet, or finds that this was done before.
pub(crate) async fn fill(app: &App, setup_token: Option<&str>) -> Result<DemoSite> {
    let mut site = DemoSite {
        tenant: TENANT,
        people: PEOPLE
            .iter()
            .map(|(email, _, role)| (*email, *role))
            .collect(),
        operator: OPERATOR,
        password: None,
        deployment: DEPLOYMENT,
        environment: ENVIRONMENT,
    };
    let Some(token) = setup_token else {
        let filled = app.store().tenant_find(&[TENANT]).await;
        return match filled {
            Ok(_) => Ok(site),
            Err(_) => {
                let message = "this installation was set up without a demonstration";
                Err(Error::new(ErrorCode::INPUT_INVALID, message)
                    .with_help("give --demo another --data-dir, or start without --demo"))
            }
        };
    };
    let password = format!(
        "{}-{}",
        word(&rand::random::<[u8; 6]>()),
        word(&rand::random::<[u8; 6]>())
    );
    let made = make(app, token, &password).await;
    made.map_err(|failure| failure.error)?;
    site.password = Some(password);
    Ok(site)
}

fn word(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

async fn make(app: &App, token: &str, password: &str) -> Result<(), Failure> {
    let context = here();
    let setup = SetupInput {
        token: token.to_owned(),
        email: OPERATOR.to_owned(),
        display_name: "Demo Owner".to_owned(),
        password: password.to_owned(),
    };
    let signed_in = app.setup_complete(&context, setup).await?;
    let who = app.authenticate(&context, &signed_in.access_token).await?;
    let root = who.home;
    let call = Call { who, context };
    let new = TenantInput {
        slug: TENANT.to_owned(),
        name: "Demonstration".to_owned(),
        settings: None,
    };
    let tenant = app.tenant_create(&call, root, new).await?.id;
    for (email, name, role) in PEOPLE {
        add(app, &call, tenant, email, name, role, password).await?;
    }
    let deployment = DeploymentInput {
        id: Some(DEPLOYMENT.to_owned()),
        organization: "Example".to_owned(),
        project: "shop".to_owned(),
        domain: "shop.example.com".to_owned(),
        template: Some("default".to_owned()),
        description: Some("Sixteen programs on a simulated cloud".to_owned()),
        accounts: BTreeMap::from([(ENVIRONMENT.to_owned(), "111111111111".to_owned())]),
        variables: BTreeMap::new(),
        all_stacks: false,
        manifest: None,
    };
    let made = app
        .deployment_create(&call, tenant, deployment, None)
        .await?;
    let run = RunInput {
        environment: ENVIRONMENT.to_owned(),
        rehearsal: true,
        // What is shipped was checked before it was shipped.
        transpile_only: true,
        message: Some("a demonstration".to_owned()),
        ..RunInput::default()
    };
    app.run_start(&call, operation::DEPLOY, tenant, &made.id, run, None)
        .await?;
    Ok(())
}

async fn add(
    app: &App,
    call: &Call,
    tenant: TenantId,
    email: &str,
    name: &str,
    role: &str,
    password: &str,
) -> Result<(), Failure> {
    let new = UserInput {
        service_account: false,
        email: email.to_owned(),
        display_name: name.to_owned(),
        password: Some(password.to_owned()),
    };
    let user = app.user_create(call, tenant, new).await?;
    let assignment = AssignmentInput {
        role: role.to_owned(),
        user: Some(user.user_id()),
        group: None,
        subtree: true,
        conditions: json!({}),
        expires_at: None,
    };
    app.role_assign(call, tenant, assignment).await?;
    Ok(())
}

/// Nobody's request: the machine's own.
fn here() -> RequestContext {
    RequestContext {
        ip: None,
        user_agent: Some("nimbus up --demo".to_owned()),
        location: None,
        trace_id: TraceId::random(),
        now: jiff::Timestamp::now(),
    }
}
