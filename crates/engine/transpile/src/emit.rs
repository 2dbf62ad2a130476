//! One file, translated.

use std::rc::Rc;

use swc_common::comments::SingleThreadedComments;
use swc_common::source_map::SourceMapGenConfig;
use swc_common::{FileName, GLOBALS, Globals, Mark, SourceFile, SourceMap, Spanned};
use swc_ecma_ast::{
    EsVersion, ExportSpecifier, Expr, ExprStmt, ImportSpecifier, Lit, ModuleDecl, ModuleItem,
    Program, Stmt,
};
use swc_ecma_codegen::text_writer::JsWriter;
use swc_ecma_codegen::{Config as CodeConfig, Emitter};
use swc_ecma_parser::{Syntax, TsSyntax, parse_file_as_module, parse_file_as_program};
use swc_ecma_transforms_base::fixer::fixer;
use swc_ecma_transforms_base::helpers::{HELPERS, Helpers, inject_helpers};
use swc_ecma_transforms_base::hygiene::hygiene;
use swc_ecma_transforms_base::resolver;
use swc_ecma_transforms_module::common_js::{Config as ModuleConfig, FeatureFlag, common_js};
use swc_ecma_transforms_module::path::Resolver;
use swc_ecma_transforms_module::util::ImportInterop;
use swc_ecma_transforms_proposal::decorators::{Config as DecoratorConfig, decorators};
use swc_ecma_transforms_react::{Options as ReactOptions, Runtime, jsx};
use swc_ecma_transforms_typescript::{
    Config as StripConfig, TsImportExportAssignConfig, typescript,
};
use swc_ecma_visit::{Visit, VisitMutWith, VisitWith};

use crate::bundle::{Compiled, ModuleFormat};
use crate::fields::AssignFields;
use crate::options::{Jsx, Modules, TranslationOptions};
use crate::survey::{Findings, survey};
use crate::unsupported::Reason;

/// Counts up when the same input gives another result than before.
pub(crate) const REVISION: u32 = 1;

type Comments = SingleThreadedComments;

/// Translates a text. `name` is the file's own name, without its folder.
pub(crate) fn emit(
    name: &str,
    text: &str,
    options: &TranslationOptions,
    format: ModuleFormat,
) -> Result<Compiled, Reason> {
    let globals = Globals::new();
    GLOBALS.set(&globals, || {
        HELPERS.set(&Helpers::new(false), || {
            let map = Rc::<SourceMap>::default();
            let file_name = Rc::new(FileName::Custom(name.to_owned()));
            let file = map.new_source_file(file_name, text.to_owned());
            let one = OneFile {
                name,
                options,
                format,
                map,
                comments: Comments::default(),
            };
            one.translate(&file)
        })
    })
}

struct OneFile<'a> {
    name: &'a str,
    options: &'a TranslationOptions,
    format: ModuleFormat,
    map: Rc<SourceMap>,
    comments: Comments,
}

impl OneFile<'_> {
    fn translate(&self, file: &SourceFile) -> Result<Compiled, Reason> {
        let mut program = self.parse(file)?;
        let unresolved = Mark::new();
        let top_level = Mark::new();
        program.mutate(resolver(unresolved, top_level, true));
        let found = survey(&program, &self.map, self.options)?;
        self.take_types_out(&mut program, &found, unresolved, top_level);
        let links = links(&program);
        if self.format == ModuleFormat::CommonJs {
            program.mutate(self.to_common_js(unresolved));
        }
        program.mutate(inject_helpers(unresolved));
        program.mutate(hygiene());
        program.mutate(fixer(None));
        if let Program::Script(script) = &mut program
            && self.options.always_strict
        {
            script.body.insert(0, use_strict());
        }
        let (code, map) = self.print(&program)?;
        Ok(Compiled {
            code,
            map,
            requests: links.requests,
            types: found.types,
            passed_on: links.passed_on,
            stars: links.stars,
            imports_late: links.imports_late,
        })
    }

    fn parse(&self, file: &SourceFile) -> Result<Program, Reason> {
        let syntax = Syntax::Typescript(TsSyntax {
            tsx: self.name.ends_with(".tsx"),
            decorators: true,
            ..TsSyntax::default()
        });
        let (target, comments) = (EsVersion::latest(), Some(&self.comments as _));
        let mut problems = Vec::new();
        let parsed = if self.format == ModuleFormat::Module {
            parse_file_as_module(file, syntax, target, comments, &mut problems).map(Program::Module)
        } else {
            parse_file_as_program(file, syntax, target, comments, &mut problems)
        };
        let told = |error: &swc_ecma_parser::error::Error| {
            let line = self.map.lookup_char_pos(error.span().lo).line;
            Reason::at(line, format!("it does not parse: {}", error.kind().msg()))
        };
        let program = parsed.map_err(|error| told(&error))?;
        match problems.first() {
            Some(problem) => Err(told(problem)),
            None => Ok(program),
        }
    }

    fn take_types_out(
        &self,
        program: &mut Program,
        found: &Findings,
        unresolved: Mark,
        top_level: Mark,
    ) {
        if self.options.legacy_decorators {
            program.mutate(decorators(DecoratorConfig {
                legacy: true,
                emit_metadata: false,
                use_define_for_class_fields: self.options.define_fields,
            }));
        }
        let assignments = match self.format {
            ModuleFormat::CommonJs => TsImportExportAssignConfig::Preserve,
            ModuleFormat::Module => TsImportExportAssignConfig::NodeNext,
        };
        program.mutate(typescript(
            StripConfig {
                verbatim_module_syntax: self.options.verbatim,
                native_class_properties: self.options.define_fields,
                no_empty_export: false,
                import_export_assign_config: assignments,
                // The compiler does not write an enum's values where they are used, unless the
                // enum is constant.
                ts_enum_is_mutable: true,
                ..StripConfig::default()
            },
            unresolved,
            top_level,
        ));
        if !self.options.define_fields {
            program.visit_mut_with(&mut AssignFields);
        }
        if found.has_jsx
            && let Some(react) = react(&self.options.jsx)
        {
            let comments = Some(self.comments.clone());
            program.mutate(jsx(
                Rc::clone(&self.map),
                comments,
                react,
                top_level,
                unresolved,
            ));
        }
    }

    fn to_common_js(&self, unresolved: Mark) -> impl swc_ecma_ast::Pass + use<> {
        let config = ModuleConfig {
            allow_top_level_this: true,
            import_interop: Some(if self.options.interop {
                ImportInterop::Swc
            } else {
                ImportInterop::None
            }),
            // Lets ES modules name what they import from here.
            export_interop_annotation: Some(self.options.modules == Modules::Node),
            ignore_dynamic: self.options.modules == Modules::Node,
            ..ModuleConfig::default()
        };
        let features = FeatureFlag {
            support_block_scoping: true,
            support_arrow: true,
        };
        common_js(Resolver::Default, unresolved, config, features)
    }

    fn print(&self, program: &Program) -> Result<(String, String), Reason> {
        let failed = |error: &dyn std::fmt::Display| Reason::new(format!("not written: {error}"));
        let mut code = Vec::new();
        let mut places = Vec::new();
        let mut emitter = Emitter {
            cfg: CodeConfig::default().with_target(EsVersion::Es2022),
            cm: Rc::clone(&self.map),
            comments: None,
            wr: JsWriter::new(Rc::clone(&self.map), "\n", &mut code, Some(&mut places)),
        };
        emitter
            .emit_program(program)
            .map_err(|error| failed(&error))?;
        let map = self.map.build_source_map(&places, None, OwnName);
        let mut written = Vec::new();
        map.to_writer(&mut written)
            .map_err(|error| failed(&error))?;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| failed(&error));
        Ok((text(code)?, text(written)?))
    }
}

/// A source map names the file by its own name: the map lies beside it.
struct OwnName;

impl SourceMapGenConfig for OwnName {
    fn file_name_to_source(&self, file: &FileName) -> String {
        file.to_string()
    }
}

fn react(jsx: &Jsx) -> Option<ReactOptions> {
    Some(match jsx {
        Jsx::Kept => return None,
        Jsx::Classic { factory, fragment } => ReactOptions {
            runtime: Some(Runtime::Classic),
            pragma: Some(factory.clone().into()),
            pragma_frag: Some(fragment.clone().into()),
            ..ReactOptions::default()
        },
        Jsx::Automatic {
            source,
            development,
        } => ReactOptions {
            runtime: Some(Runtime::Automatic),
            import_source: Some(source.as_str().into()),
            development: Some(*development),
            ..ReactOptions::default()
        },
    })
}

fn use_strict() -> Stmt {
    Stmt::Expr(ExprStmt {
        span: Default::default(),
        expr: Box::new(Expr::Lit(Lit::Str("use strict".into()))),
    })
}

/// What ties a file to others, once types are gone.
#[derive(Default)]
struct Links {
    requests: Vec<String>,
    passed_on: Vec<(String, String)>,
    stars: Vec<String>,
    imports_late: bool,
}

fn links(program: &Program) -> Links {
    let mut links = Links::default();
    program.visit_with(&mut links);
    if let Program::Module(module) = program {
        links.exports(&module.body);
    }
    links.requests.sort();
    links.requests.dedup();
    links
}

fn text(value: &swc_ecma_ast::Str) -> String {
    value.value.to_string_lossy().into_owned()
}

impl Links {
    fn exports(&mut self, body: &[ModuleItem]) {
        let mut imported = std::collections::BTreeMap::new();
        for item in body {
            let ModuleItem::ModuleDecl(ModuleDecl::Import(import)) = item else {
                continue;
            };
            for specifier in &import.specifiers {
                if let ImportSpecifier::Named(named) = specifier {
                    let name = named.imported.as_ref().map_or_else(
                        || named.local.sym.to_string(),
                        |name| name.atom().to_string(),
                    );
                    imported.insert(named.local.to_id(), (text(&import.src), name));
                }
            }
        }
        for item in body {
            match item {
                ModuleItem::ModuleDecl(ModuleDecl::ExportAll(all)) => {
                    self.stars.push(text(&all.src));
                }
                ModuleItem::ModuleDecl(ModuleDecl::ExportNamed(named)) => {
                    for specifier in &named.specifiers {
                        let ExportSpecifier::Named(one) = specifier else {
                            continue;
                        };
                        let passed = match (&named.src, &one.orig) {
                            (Some(source), name) => Some((text(source), name.atom().to_string())),
                            (None, swc_ecma_ast::ModuleExportName::Ident(name)) => {
                                imported.get(&name.to_id()).cloned()
                            }
                            (None, swc_ecma_ast::ModuleExportName::Str(_)) => None,
                        };
                        self.passed_on.extend(passed);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Visit for Links {
    fn visit_module_decl(&mut self, declaration: &ModuleDecl) {
        let source = match declaration {
            ModuleDecl::Import(import) => Some(&import.src),
            ModuleDecl::ExportAll(all) => Some(&all.src),
            ModuleDecl::ExportNamed(named) => named.src.as_ref(),
            _ => None,
        };
        self.requests.extend(source.map(|source| text(source)));
        declaration.visit_children_with(self);
    }

    fn visit_ts_external_module_ref(&mut self, reference: &swc_ecma_ast::TsExternalModuleRef) {
        self.requests.push(text(&reference.expr));
    }

    fn visit_call_expr(&mut self, call: &swc_ecma_ast::CallExpr) {
        let asks = match &call.callee {
            swc_ecma_ast::Callee::Import(_) => {
                self.imports_late = true;
                true
            }
            swc_ecma_ast::Callee::Expr(callee) => match callee.as_ref() {
                Expr::Ident(name) => name.sym == "require",
                _ => false,
            },
            swc_ecma_ast::Callee::Super(_) => false,
        };
        if asks
            && let Some(argument) = call.args.first()
            && let Expr::Lit(Lit::Str(name)) = argument.expr.as_ref()
        {
            self.requests.push(text(name));
        }
        call.visit_children_with(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> TranslationOptions {
        TranslationOptions {
            modules: Modules::CommonJs,
            interop: true,
            define_fields: false,
            legacy_decorators: false,
            decorator_metadata: false,
            verbatim: false,
            always_strict: true,
            jsx: Jsx::Kept,
        }
    }

    fn common_js(text: &str, options: &TranslationOptions) -> Result<Compiled, Reason> {
        emit("index.ts", text, options, ModuleFormat::CommonJs)
    }

    fn refusal(text: &str) -> Option<Reason> {
        common_js(text, &options()).err()
    }

    #[test]
    fn types_go_and_with_them_what_is_only_imported_for_them() {
        let text = "import { T } from \"./types\";\nimport { f } from \"./f\";\nimport lib = require(\"lib\");\nexport const x: T = f(lib);";
        let compiled = common_js(text, &options()).expect("plain code");
        assert_eq!(compiled.requests, ["./f", "lib"]);
        assert!(!compiled.code.contains("./types"), "{}", compiled.code);
    }

    #[test]
    fn fields_are_assigned_or_defined_as_the_project_says() {
        let text = "class A { x = 1; y: number; }";
        let assigned = common_js(text, &options()).expect("plain code").code;
        assert!(assigned.contains("this.x = 1"), "{assigned}");
        assert!(!assigned.contains('y'), "{assigned}");
        let options = TranslationOptions {
            define_fields: true,
            ..options()
        };
        let defined = common_js(text, &options).expect("plain code").code;
        assert!(
            defined.contains("y;") && !defined.contains("this"),
            "{defined}"
        );
    }

    #[test]
    fn a_field_does_not_fall_for_a_name_of_the_constructor() {
        let text = "const args = 1; class B extends A { x = args; }";
        let code = common_js(text, &options()).expect("plain code").code;
        assert!(
            code.contains("this.x = args") && code.contains("super(...args1)"),
            "{code}"
        );
    }

    #[test]
    fn what_one_file_alone_could_get_wrong_is_refused_with_its_line() {
        for text in [
            "\n@d class A {}",
            "\nclass A { accessor x = 1 }",
            "\nusing x = f();",
            "\nenum E { A = OTHER }",
            "\nexport declare const enum E { A }",
            "\nclass A { #p = 1; q = 2 }",
            "\nconst f = new aws.lambda.CallbackFunction(\"f\", {});",
            "\nbucket.onObjectCreated(\"f\", () => 1);",
            "\nclass R extends pulumi.dynamic.Resource {}",
            "\nlet let = ;",
        ] {
            let reason = refusal(text).expect(text);
            assert_eq!(reason.line, Some(2), "{text}: {reason:?}");
        }
        for text in [
            "enum E { A = 1 << 2, B = A | 1, C = `x` }",
            "const enum E { A } export const x = E.A;",
            "class A { #p; q = 2 }",
            "const dynamic = true; log.once(dynamic);",
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
    }

    #[test]
    fn names_that_are_passed_on_are_known() {
        let text = "import { a } from \"./a\"; export { a }; export { b as c } from \"./b\"; export * from \"./s\"; export interface I {} export type V = 1; export const V = 1;";
        let compiled =
            emit("index.mts", text, &options(), ModuleFormat::Module).expect("plain code");
        let passed = [("./a", "a"), ("./b", "b")].map(|(m, n)| (m.to_owned(), n.to_owned()));
        assert_eq!(compiled.passed_on, passed);
        assert_eq!(
            (compiled.stars, compiled.types),
            (vec!["./s".to_owned()], vec!["I".to_owned()])
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange_to_be_refused(text in "[ -~\\n]{0,80}") {
            let _ = common_js(&text, &options());
        }
    }
}
