//! Programs in TypeScript.

use std::collections::BTreeMap;

use nimbus_catalog::{ProgramSurface, SourceProblem};
use nimbus_engine_transpile::surface;
use serde_json::Value;

use crate::missing;

const FOLDER: &str = "src/";

pub(crate) fn read(files: &BTreeMap<String, String>) -> Result<ProgramSurface, Vec<SourceProblem>> {
    let entry = entry(files);
    if !files.contains_key(&entry) {
        return Err(missing(&entry));
    }
    let mut found = ProgramSurface {
        self_contained: true,
        ..ProgramSurface::default()
    };
    let mut problems = Vec::new();
    for (path, text) in files {
        let is_source =
            (path.ends_with(".ts") || path.ends_with(".tsx")) && !path.ends_with(".d.ts");
        if !is_source {
            continue;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let module = match surface(name, text) {
            Ok(module) => module,
            Err(error) => {
                problems.push(SourceProblem {
                    file: path.clone(),
                    line: error.line,
                    message: error.message,
                });
                continue;
            }
        };
        if *path == entry {
            found.outputs = module.exports;
            found.open_outputs = module.exports_more;
        }
        found.required_keys.extend(module.required_keys);
        found.texts.extend(module.texts);
        found.self_contained &= module.imports.iter().all(|name| is_known(name));
    }
    match problems.is_empty() {
        true => Ok(found),
        false => Err(problems),
    }
}

/// Where the program begins, as its package says.
fn entry(files: &BTreeMap<String, String>) -> String {
    let package = files.get("src/package.json");
    let package = package.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let main = package
        .as_ref()
        .and_then(|package| package["main"].as_str());
    let main = main
        .map(|path| path.trim_start_matches("./"))
        .filter(|path| path.ends_with(".ts"));
    format!("{FOLDER}{}", main.unwrap_or("index.ts"))
}

/// Whether nothing behind an import reads configuration: files of the program, packages of Pulumi, Node's own.
fn is_known(import: &str) -> bool {
    import.starts_with('.') || import.starts_with("@pulumi/") || import.starts_with("node:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn a_program_is_its_entry_and_what_is_beside_it() {
        let found = read(&files(&[
            ("src/package.json", r#"{"main": "./program.ts"}"#),
            ("src/program.ts", "import { a } from './more';\nexport const id = a;\n"),
            (
                "src/more.ts",
                "import * as pulumi from '@pulumi/pulumi';\nexport const a = new pulumi.Config().require('size');\n",
            ),
            ("src/handler/run.mjs", "this is { no typescript"),
        ]))
        .unwrap();
        assert_eq!(found.outputs.into_iter().collect::<Vec<_>>(), ["id"]);
        assert!(found.required_keys.contains("size"));
        assert!(found.self_contained);
    }

    #[test]
    fn every_file_that_does_not_parse_is_named() {
        let problems = read(&files(&[
            ("src/index.ts", "export const a = ;"),
            ("src/b.ts", "\n\nfunction {"),
        ]))
        .unwrap_err();
        let told: Vec<_> = problems
            .iter()
            .map(|one| (one.file.as_str(), one.line))
            .collect();
        assert_eq!(told, [("src/b.ts", Some(3)), ("src/index.ts", Some(1))]);
        assert_eq!(read(&files(&[("src/a.ts", "")])).unwrap_err().len(), 1);
    }
}
