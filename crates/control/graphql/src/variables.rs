//! Variables of a document, held against what it declares before anything is done for it.
//!
//! The library reads a variable where a field uses it, so that one that is missing would be a failure of that field,
//! with others of the same document carried out. By the specification the whole document is refused. Types that belong to
//! the schema are left to the library, which refuses documents with a wrong value before it begins.

use async_graphql::parser::types::{BaseType, ExecutableDocument, OperationDefinition, Type};
use nimbus_control_app::Failure;
use serde_json::Value;

/// Refuses a document to which a variable is not given as it is declared.
pub(crate) fn ensure_given(
    document: &ExecutableDocument,
    operation_name: Option<&str>,
    given: &Value,
) -> Result<(), Failure> {
    // Which operation is meant is a question for the library, whose answer then is no.
    let Some(operation) = chosen(document, operation_name) else {
        return Ok(());
    };
    for variable in &operation.variable_definitions {
        let variable = &variable.node;
        let name = variable.name.node.as_str();
        let declared = &variable.var_type.node;
        match given.get(name) {
            Some(value) if fits(declared, value) => {}
            None if declared.nullable || variable.default_value.is_some() => {}
            Some(_) | None => {
                let name: String = name.chars().take(100).collect();
                let words = format!("give a value of the type {declared}");
                return Err(Failure::field(format!("variables.{name}"), words));
            }
        }
    }
    Ok(())
}

fn chosen<'a>(
    document: &'a ExecutableDocument,
    name: Option<&str>,
) -> Option<&'a OperationDefinition> {
    let mut operations = document.operations.iter();
    let found = match name {
        Some(name) => {
            operations.find(|(known, _)| known.is_some_and(|known| known.as_str() == name))
        }
        None if operations.len() == 1 => operations.next(),
        None => None,
    };
    found.map(|(_, operation)| &operation.node)
}

fn fits(declared: &Type, value: &Value) -> bool {
    if value.is_null() {
        return declared.nullable;
    }
    match (&declared.base, value) {
        (BaseType::List(item), Value::Array(values)) => {
            values.iter().all(|value| fits(item, value))
        }
        // One value stands for a list of it.
        (BaseType::List(item), one) => fits(item, one),
        (BaseType::Named(name), value) => match name.as_str() {
            // Numbers of events and entries have more than 32 bits.
            "Int" => value.is_i64() || value.is_u64(),
            "Float" => value.is_number(),
            "String" => value.is_string(),
            "Boolean" => value.is_boolean(),
            "ID" => value.is_string() || value.is_i64() || value.is_u64(),
            _ => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;
    use serde_json::json;

    use super::*;

    fn refused(query: &str, name: Option<&str>, given: Value) -> Option<String> {
        let document = parse_query(query).unwrap();
        let found = ensure_given(&document, name, &given).err()?;
        Some(found.error.message().to_owned())
    }

    #[test]
    fn what_is_declared_is_given() {
        let query = "query($id: ID!, $first: Int = 5, $text: String, $many: [Int!], $yes: Boolean! = true) { a }";
        for given in [
            json!({"id": "x"}),
            json!({"id": 7, "first": 9_007_199_254_740_993_u64, "text": null, "many": 3}),
            json!({"id": "x", "many": [1, 2], "yes": false, "more": {}}),
        ] {
            assert_eq!(refused(query, None, given.clone()), None, "{given}");
        }
        for (given, name) in [
            (json!({}), "id"),
            (json!({"id": null}), "id"),
            (json!({"id": true}), "id"),
            (json!({"id": "x", "first": "5"}), "first"),
            (json!({"id": "x", "first": 1.5}), "first"),
            (json!({"id": "x", "text": 1}), "text"),
            (json!({"id": "x", "many": [1, null]}), "many"),
            (json!({"id": "x", "yes": null}), "yes"),
        ] {
            let said = refused(query, None, given).unwrap();
            assert!(said.contains(&format!("`variables.{name}`")), "{said}");
        }
    }

    #[test]
    fn only_the_operation_that_is_carried_out_counts() {
        let query = "query A($id: ID!) { a } query B { b }";
        assert_eq!(refused(query, Some("B"), json!({})), None);
        assert!(refused(query, Some("A"), json!({})).is_some());
        // Neither is carried out, which the library says.
        assert_eq!(refused(query, None, json!({})), None);
        assert_eq!(refused(query, Some("C"), json!({})), None);
    }
}
