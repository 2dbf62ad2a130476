//! From what people write about existing objects to what the deployment needs to import them.

use std::collections::BTreeMap;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_deploy::{ImportProvider, ImportSpec};
use nimbus_engine_model::{PackageDescriptor, Urn};
use nimbus_engine_monitor::package_config;
use nimbus_engine_ports::DeploymentContext;

use crate::request::ImportItem;

/// What imports are resolved against.
pub(crate) struct ImportScope<'a> {
    pub(crate) context: &'a DeploymentContext,
    /// What the program's installed packages need, by package.
    pub(crate) packages: &'a BTreeMap<String, PackageDescriptor>,
}

impl ImportScope<'_> {
    pub(crate) fn specs(&self, items: &[ImportItem]) -> Result<Vec<ImportSpec>> {
        let mut specs: Vec<ImportSpec> = Vec::with_capacity(items.len());
        for item in items {
            check(item)?;
            let parent = self.parent(item, &specs)?;
            let spec = ImportSpec {
                type_: item.type_.clone(),
                name: item.name.clone(),
                id: item.id.clone(),
                parent,
                provider: self.provider(item)?,
                protect: item.protect,
                properties: item.properties.clone(),
                component: item.component,
            };
            let urn = self.urn(&spec);
            if specs.iter().any(|other| self.urn(other) == urn) {
                return Err(invalid(format!("{} is given twice", item.name)));
            }
            specs.push(spec);
        }
        Ok(specs)
    }

    /// A name in the table, or an item that was given before.
    fn parent(&self, item: &ImportItem, before: &[ImportSpec]) -> Result<Option<Urn>> {
        let Some(name) = &item.parent else {
            return Ok(None);
        };
        let known = item.names.get(name).cloned();
        let given = || {
            before
                .iter()
                .find(|spec| spec.name == *name)
                .map(|spec| self.urn(spec))
        };
        known.or_else(given).map(Some).ok_or_else(|| {
            invalid(format!("the parent {name} of {} is not known", item.name))
                .with_help("list the parent first, or give its URN in nameTable")
        })
    }

    fn provider(&self, item: &ImportItem) -> Result<ImportProvider> {
        if let Some(name) = &item.provider {
            let urn = item.names.get(name).cloned();
            let urn = urn.or_else(|| Urn::parse(name).ok());
            return urn.map(ImportProvider::Existing).ok_or_else(|| {
                invalid(format!("the provider {name} of {} is not known", item.name))
                    .with_help("give the provider's URN in nameTable")
            });
        }
        let name = item.type_.split(':').next().unwrap_or_default();
        let mut package = self.packages.get(name).cloned().unwrap_or_default();
        if package.name.is_empty() {
            name.clone_into(&mut package.name);
        }
        if item.version.is_some() {
            package.version.clone_from(&item.version);
        }
        if !item.plugin_download_url.is_empty() {
            package.download_url.clone_from(&item.plugin_download_url);
        }
        let config = package_config(self.context, package.package());
        let package = Box::new(package);
        Ok(ImportProvider::Default { package, config })
    }

    fn urn(&self, spec: &ImportSpec) -> Urn {
        let parent = spec.parent.as_ref().map(Urn::qualified_type);
        Urn::new(
            &self.context.stack,
            &self.context.project,
            parent,
            &spec.type_,
            &spec.name,
        )
    }
}

fn check(item: &ImportItem) -> Result<()> {
    if item.type_.split(':').count() != 3 || item.type_.split(':').any(str::is_empty) {
        let message = format!("{:?} is not a resource type", item.type_);
        return Err(invalid(message).with_help("write it as package:module:Type"));
    }
    if item.name.is_empty() {
        return Err(invalid(format!(
            "an import of type {} has no name",
            item.type_
        )));
    }
    if item.id.is_empty() != item.component {
        let problem = if item.component {
            "a component has no id"
        } else {
            "it has no id"
        };
        return Err(invalid(format!(
            "{} cannot be imported: {problem}",
            item.name
        )));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::IMPORT_INVALID, message)
}

#[cfg(test)]
mod tests {
    use semver::Version;

    use super::*;

    fn item(type_: &str, name: &str, id: &str) -> ImportItem {
        ImportItem {
            type_: type_.into(),
            name: name.into(),
            id: id.into(),
            ..ImportItem::default()
        }
    }

    fn specs(items: &[ImportItem]) -> Result<Vec<ImportSpec>> {
        let context = DeploymentContext {
            project: "shop".into(),
            stack: "dev".into(),
            config: [("aws:region".to_owned(), "eu".to_owned())].into(),
            ..DeploymentContext::default()
        };
        let aws = PackageDescriptor {
            name: "aws".into(),
            version: Some(Version::new(7, 1, 0)),
            ..PackageDescriptor::default()
        };
        let packages = BTreeMap::from([("aws".to_owned(), aws)]);
        let scope = ImportScope {
            context: &context,
            packages: &packages,
        };
        scope.specs(items)
    }

    #[test]
    fn the_program_s_own_package_and_configuration_read_the_object() {
        let found = specs(&[item("aws:s3/bucket:Bucket", "logs", "b-1")]).unwrap();
        let ImportProvider::Default { package, config } = &found[0].provider else {
            panic!("no provider was named");
        };
        assert_eq!(package.version, Some(Version::new(7, 1, 0)));
        assert_eq!(config["region"], "eu".into());
        let mut other = item("gcp:a:B", "x", "1");
        other.version = Some(Version::new(1, 0, 0));
        let found = specs(&[other]).unwrap();
        assert!(
            matches!(&found[0].provider, ImportProvider::Default { package, .. }
            if package.name == "gcp" && package.version == Some(Version::new(1, 0, 0)))
        );
    }

    #[test]
    fn parents_are_found_in_the_list_and_in_the_table() {
        let mut site = item("my:web:Site", "site", "");
        site.component = true;
        let mut page = item("aws:s3/bucket:Bucket", "page", "p");
        page.parent = Some("site".into());
        let known = Urn::new("dev", "shop", None, "my:web:Site", "old");
        let mut other = item("aws:s3/bucket:Bucket", "other", "o");
        other.parent = Some("there".into());
        other.names = [("there".to_owned(), known.clone())].into();
        let found = specs(&[site, page.clone(), other]).unwrap();
        let expected = Urn::new("dev", "shop", None, "my:web:Site", "site");
        assert_eq!(found[1].parent, Some(expected));
        assert_eq!(found[2].parent, Some(known));
        let error = specs(&[page]).unwrap_err();
        assert!(error.message().contains("site"), "{}", error.message());
    }

    #[test]
    fn what_cannot_be_imported_is_refused() {
        let mut component = item("a:b:C", "x", "id");
        component.component = true;
        for (items, part) in [
            (vec![item("a:b", "x", "1")], "type"),
            (vec![item("a:b:C", "", "1")], "name"),
            (vec![item("a:b:C", "x", "")], "no id"),
            (vec![component], "component"),
            (
                vec![item("a:b:C", "x", "1"), item("a:b:C", "x", "2")],
                "twice",
            ),
        ] {
            let error = specs(&items).unwrap_err();
            assert_eq!(error.code(), ErrorCode::IMPORT_INVALID);
            assert!(error.message().contains(part), "{}", error.message());
        }
    }
}
