//! JSON as `tsconfig.json` is written: with comments and trailing commas.
//!
//! That is an object literal of the language, so its parser reads it.

use serde_json::{Map, Number, Value};
use swc_common::{FileName, SourceMap};
use swc_ecma_ast::{EsVersion, Expr, Lit, Prop, PropName, PropOrSpread, Stmt, UnaryOp};
use swc_ecma_parser::{Syntax, parse_file_as_script};

/// `None` when the text is no such document.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let map = SourceMap::default();
    let text = text.trim_start_matches('\u{feff}').to_owned();
    if text.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    // In brackets it is one statement, and nothing may follow.
    let file = map.new_source_file(FileName::Anon.into(), format!("({text}\n)"));
    let syntax = Syntax::Es(swc_ecma_parser::EsSyntax::default());
    let mut problems = Vec::new();
    let script = parse_file_as_script(&file, syntax, EsVersion::latest(), None, &mut problems);
    match script.ok()?.body.as_slice() {
        [Stmt::Expr(only)] if problems.is_empty() => value(&only.expr),
        _ => None,
    }
}

fn value(expr: &Expr) -> Option<Value> {
    Some(match expr {
        Expr::Lit(Lit::Str(text)) => Value::String(text.value.as_str()?.to_owned()),
        Expr::Lit(Lit::Num(number)) => self::number(number.value)?,
        Expr::Lit(Lit::Bool(flag)) => Value::Bool(flag.value),
        Expr::Lit(Lit::Null(_)) => Value::Null,
        Expr::Unary(unary) if unary.op == UnaryOp::Minus => match value(&unary.arg)? {
            Value::Number(negated) => number(-negated.as_f64()?)?,
            _ => return None,
        },
        Expr::Paren(inner) => value(&inner.expr)?,
        Expr::Array(array) => array
            .elems
            .iter()
            .map(|element| value(&element.as_ref()?.expr))
            .collect::<Option<Vec<_>>>()?
            .into(),
        Expr::Object(object) => Value::Object(
            object
                .props
                .iter()
                .map(member)
                .collect::<Option<Map<_, _>>>()?,
        ),
        _ => return None,
    })
}

fn number(value: f64) -> Option<Value> {
    let whole = value.fract() == 0.0 && value.abs() < 9e15;
    if whole {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

fn member(prop: &PropOrSpread) -> Option<(String, Value)> {
    let PropOrSpread::Prop(prop) = prop else {
        return None;
    };
    let Prop::KeyValue(pair) = prop.as_ref() else {
        return None;
    };
    let PropName::Str(key) = &pair.key else {
        return None;
    };
    Some((key.value.as_str()?.to_owned(), value(&pair.value)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_read_over() {
        let text = r#"{
            // what to build
            "compilerOptions": { "target": "es2022", /* yes */ "strict": true, },
            "files": ["index.ts",], "depth": -1.5, "none": null,
        }"#;
        let expected = json!({
            "compilerOptions": {"target": "es2022", "strict": true},
            "files": ["index.ts"], "depth": -1.5, "none": null,
        });
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("  "), Some(json!({})));
    }

    #[test]
    fn what_computes_is_no_document() {
        for text in ["{", "{a: 1}", "{\"a\": f()}", "[...x]", "{} {}"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
