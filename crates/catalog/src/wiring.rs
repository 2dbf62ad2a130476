//! Whether an input may take another component's output.

use serde_json::Value;

use crate::contract::{ComponentContract, properties, types};

/// Why an input cannot take an output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WiringProblem {
    #[error("`{component}` has no output `{output}`; it has {known}")]
    NoOutput {
        component: String,
        output: String,
        known: String,
    },
    #[error(
        "the input `{input}` is a {taken}, and the output `{output}` of `{component}` is a {given}"
    )]
    OtherType {
        input: String,
        taken: String,
        component: String,
        output: String,
        given: String,
    },
}

/// Checks one wire: `input` of a component takes `output` of the component `source`. `whole` is whether it takes the
/// value as it is; a text around it makes it a text.
pub fn check_wiring(
    contract: &ComponentContract,
    input: &str,
    source: (&str, &ComponentContract),
    output: &str,
    whole: bool,
) -> Option<WiringProblem> {
    let (component, given) = source;
    let outputs = properties(&given.outputs);
    let Some(schema) = outputs.get(output) else {
        let mut known: Vec<_> = outputs.keys().map(String::as_str).collect();
        known.sort_unstable();
        return Some(WiringProblem::NoOutput {
            component: component.to_owned(),
            output: output.to_owned(),
            known: if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            },
        });
    };
    let taken = types(properties(&contract.inputs).get(input)?);
    let mut given = types(schema);
    if !whole {
        // A list or an object inside of a text is nothing that anybody reads.
        let scalar = |name: &String| !matches!(name.as_str(), "array" | "object" | "null");
        if !given.is_empty() && !given.iter().any(scalar) {
            return Some(mismatch(
                input,
                &["string".to_owned()],
                component,
                output,
                &given,
            ));
        }
        given = vec!["string".to_owned()];
    }
    let fits = |one: &String| {
        taken.contains(one) || one == "integer" && taken.iter().any(|other| other == "number")
    };
    if taken.is_empty() || given.is_empty() || given.iter().any(fits) {
        return None;
    }
    Some(mismatch(input, &taken, component, output, &given))
}

fn mismatch(
    input: &str,
    taken: &[String],
    component: &str,
    output: &str,
    given: &[String],
) -> WiringProblem {
    WiringProblem::OtherType {
        input: input.to_owned(),
        taken: taken.join(" or "),
        component: component.to_owned(),
        output: output.to_owned(),
        given: given.join(" or "),
    }
}

/// Whether a schema says that nobody may see its value.
pub(crate) fn is_secret(schema: &Value) -> bool {
    schema.get("x-secret") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wire_leads_to_an_output_of_a_type_that_fits() {
        let network = ComponentContract {
            outputs: json!({"type": "object", "properties": {
                "vpcId": {"type": "string"}, "subnets": {"type": "array"}, "zones": {"type": "integer"}}}),
            ..ComponentContract::default()
        };
        let database = ComponentContract {
            inputs: json!({"type": "object", "properties": {
                "vpcId": {"type": "string"}, "subnetIds": {"type": "array"}, "count": {"type": "number"}}}),
            ..ComponentContract::default()
        };
        let wire = |input: &str, output: &str, whole: bool| {
            check_wiring(&database, input, ("network", &network), output, whole)
        };
        assert_eq!(wire("vpcId", "vpcId", true), None);
        assert_eq!(wire("subnetIds", "subnets", true), None);
        assert_eq!(wire("count", "zones", true), None);
        assert_eq!(
            wire("vpcId", "zones", false),
            None,
            "a text around it makes it one"
        );
        assert_eq!(
            wire("anything", "subnets", true),
            None,
            "nothing is said of it"
        );
        let text = |problem: Option<WiringProblem>| problem.map(|one| one.to_string());
        assert_eq!(
            text(wire("vpcId", "nothing", true)).unwrap(),
            "`network` has no output `nothing`; it has subnets, vpcId, zones"
        );
        assert!(
            text(wire("vpcId", "subnets", true))
                .unwrap()
                .contains("is a array")
        );
        assert!(wire("vpcId", "subnets", false).is_some());
        assert!(wire("subnetIds", "vpcId", true).is_some());
    }
}
