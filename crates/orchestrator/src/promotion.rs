//! Which environment follows which, and that nothing is said of one that there is not.

use indexmap::IndexMap;
use nimbus_core::{EnvironmentName, Result};
use nimbus_document::{View, did_you_mean};

/// `environments` in the order in which they are promoted: that of the list `promotion`, or else that
/// of the file.
///
/// Files that were written before there was such a list have the alphabet's order, so dev, stage and
/// prod are known to come in this one.
pub(crate) fn promotion_order<T>(
    view: &View<'_>,
    read: impl Fn(View<'_>) -> Result<T>,
) -> Result<IndexMap<EnvironmentName, T>> {
    let Some(map) = view.optional("environments")? else {
        return Ok(IndexMap::new());
    };
    let mut found = IndexMap::new();
    for (name, value) in map.entries()? {
        let environment = name
            .parse::<EnvironmentName>()
            .map_err(|error| value.error(error.to_string(), "of this environment"))?;
        found.insert(environment, read(value)?);
    }
    match view.optional("promotion")? {
        None => sort_by_usual_promotion(&mut found),
        Some(list) => {
            let order = listed(&list, &found)?;
            found.sort_by_cached_key(|name, _| order.iter().position(|one| one == name));
        }
    }
    Ok(found)
}

/// Puts dev, stage and prod into this order. Where there are other names nobody can know better than
/// the file, so its order stays.
pub fn sort_by_usual_promotion<T>(environments: &mut IndexMap<EnvironmentName, T>) {
    const USUAL: [EnvironmentName; 3] = [
        EnvironmentName::DEV,
        EnvironmentName::STAGE,
        EnvironmentName::PROD,
    ];
    if environments.keys().all(|name| USUAL.contains(name)) {
        environments.sort_by_cached_key(|name, _| USUAL.iter().position(|one| one == name));
    }
}

/// Configuration of an environment that there is not is a slip of the pen: without this it would be
/// kept, and configure nothing.
pub(crate) fn refuse_stray_config<T>(
    view: &View<'_>,
    environments: &IndexMap<EnvironmentName, T>,
) -> Result<()> {
    let Some(stacks) = view.optional("stacks")? else {
        return Ok(());
    };
    for (_, stack) in stacks.entries()? {
        if stack.node().is_null() {
            continue;
        }
        let Some(config) = stack.optional("config")? else {
            continue;
        };
        for (name, value) in config.entries()? {
            let known = environments.keys().map(EnvironmentName::as_str);
            if known.clone().any(|known| known == name) {
                continue;
            }
            let hint = if name == "staging" && environments.contains_key(&EnvironmentName::STAGE) {
                Some(
                    "staging is called stage since 3.1; `nimbus migrate-environment-names` renames it"
                        .to_owned(),
                )
            } else {
                did_you_mean(name, known)
            };
            let hint = hint.unwrap_or_else(|| "not under environments".to_owned());
            return Err(value.error(format!("there is no environment `{name}`"), hint));
        }
    }
    Ok(())
}

/// A list that names every environment once.
fn listed<T>(
    list: &View<'_>,
    known: &IndexMap<EnvironmentName, T>,
) -> Result<Vec<EnvironmentName>> {
    let mut order = Vec::new();
    for item in list.items()? {
        let text = item.str()?;
        let environment = known.keys().find(|name| name.as_str() == text);
        let Some(environment) = environment else {
            let names = known.keys().map(EnvironmentName::as_str);
            let hint =
                did_you_mean(text, names).unwrap_or_else(|| "no such environment".to_owned());
            return Err(item.error(format!("there is no environment `{text}`"), hint));
        };
        if order.contains(environment) {
            return Err(item.error(format!("`{text}` is promoted twice"), "again"));
        }
        order.push(*environment);
    }
    match known.keys().find(|name| !order.contains(name)) {
        None => Ok(order),
        Some(missing) => Err(list.error(
            format!("`promotion` does not say when `{missing}` follows"),
            "must name every environment",
        )),
    }
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;

    use crate::template::ManifestTemplate;

    #[test]
    fn a_manifest_template_refuses_configuration_of_an_environment_that_it_has_not() {
        let text = "name: t\nenvironments: {test: {}}\nstacks:\n  a: {config: {tset: {}}}\n";
        let error = ManifestTemplate::read(&Document::parse("t.yaml", text).unwrap()).unwrap_err();
        assert!(error.message().contains("no environment `tset`"), "{error}");
    }

    #[test]
    fn a_manifest_template_has_an_order_of_promotion() {
        let read = |text: &str| {
            let document = Document::parse("t.yaml", text).unwrap();
            let template = ManifestTemplate::read(&document).unwrap();
            let names: Vec<_> = template
                .environments
                .keys()
                .map(|e| e.to_string())
                .collect();
            names.join(" ")
        };
        assert_eq!(
            read("name: t\nenvironments: {live: {}, test: {}}\npromotion: [test, live]\n"),
            "test live"
        );
        assert_eq!(
            read("name: t\nenvironments: {prod: {}, dev: {}}\n"),
            "dev prod"
        );
    }
}
