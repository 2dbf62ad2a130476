//! Every shipped component keeps what its contract says, as far as its code shows it.

use std::collections::BTreeMap;

use nimbus_catalog::{ProgramLanguage, SurfaceReader, compare_claims, from_template};
use nimbus_catalog_programs::ProgramReader;
use nimbus_document::Document;
use serde_json::Value;

#[test]
fn the_shipped_components_keep_their_contracts() {
    let shipped = nimbus_library::files();
    let mut seen = 0;
    for (path, content) in shipped {
        let Some(name) = path
            .strip_prefix("tools/templates/config/")
            .and_then(|file| file.strip_suffix(".yaml"))
        else {
            continue;
        };
        let document = Document::parse_bytes(path, content).unwrap();
        let Value::Object(template) = document.to_json(document.root()).unwrap() else {
            panic!("{path}");
        };
        let (_, _, contract, _) = from_template(&template);
        assert_eq!(contract.problems(), [], "{name}");
        let folder = format!("stacks/{name}/");
        let files: BTreeMap<String, String> = shipped
            .iter()
            .filter_map(|(path, content)| {
                let file = path.strip_prefix(&folder)?;
                let text = String::from_utf8(content.to_vec()).ok()?;
                file.starts_with("src/").then(|| (file.to_owned(), text))
            })
            .collect();
        let surface = ProgramReader
            .read(ProgramLanguage::TypeScript, &files)
            .unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert_eq!(compare_claims(&contract, &surface), [], "{name}");
        seen += 1;
    }
    assert_eq!(seen, 16);
}
