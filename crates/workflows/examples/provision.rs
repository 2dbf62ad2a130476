//! A workflow with its steps: it reserves something for an owner, and releases it again unless all went well.

use nimbus_workflows::{Definitions, Durable, Fail, FlowDef, Saga, StepDef, StepOptions};

struct Reserve; // a step has a name and types; its body is given where it is registered
impl StepDef for Reserve {
    const NAME: &'static str = "reserve";
    type In = String;
    type Out = u32;
}
struct Release;
impl StepDef for Release {
    const NAME: &'static str = "release";
    type In = String;
    type Out = ();
}

struct Provision;
impl FlowDef for Provision {
    const NAME: &'static str = "provision";
    type In = String;
    type Out = u32;
    async fn run(durable: &dyn Durable, owner: String) -> Result<u32, Fail> {
        let mut saga = Saga::new(durable);
        let outcome = saga
            .step::<Reserve, Release>(&owner, &owner, StepOptions::default().attempts(3))
            .await;
        saga.finish(outcome).await // undoes in reverse order unless it succeeded
    }
}

fn main() {
    let mut definitions = Definitions::default();
    definitions.step::<Reserve, _, _>(|scope, owner| async move {
        let _idempotency_key = scope.key(); // workflow id + step number
        Ok(u32::try_from(owner.len()).unwrap_or(0))
    });
    definitions.step::<Release, _, _>(|_, _| async { Ok(()) });
    definitions.flow::<Provision>();
}
