//! What one TypeScript file shows of itself: its exports, its texts, the configuration that it cannot do without, and
//! what it imports. Nothing is run and nothing is translated.
//!
//! Files come from people that the server does not know, and a parser's stack grows with what it reads. So parts are
//! counted first, by a reader that needs no stack, and the work is done on a thread with room for as many.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::thread;

use swc_common::{FileName, GLOBALS, Globals, SourceMap, Spanned};
use swc_ecma_ast::{
    CallExpr, Callee, Decl, EsVersion, ExportSpecifier, Expr, Lit, MemberProp, Module, ModuleDecl,
    ModuleExportName, ModuleItem, Pat, Str, Tpl,
};
use swc_ecma_parser::{Syntax, TsSyntax, parse_file_as_module};
use swc_ecma_visit::{Visit, VisitWith};

/// Words, texts, numbers and signs of one file.
const MOST_PARTS: usize = 20_000;
/// Brackets inside each other, for which a parser needs most of its stack.
const DEEPEST: usize = 256;
/// Enough for every part to be inside of the one before.
const STACK_BYTES: usize = 512 * 1024 * 1024;

/// What a file shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleSurface {
    pub exports: BTreeSet<String>,
    /// Whether it also exports what only a run can tell.
    pub exports_more: bool,
    /// Keys that it asks of its configuration with `require…`.
    pub required_keys: BTreeSet<String>,
    pub texts: BTreeSet<String>,
    /// What it imports, as it is written.
    pub imports: BTreeSet<String>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SurfaceError {
    pub line: Option<usize>,
    pub message: String,
}

impl SurfaceError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            line: None,
            message: message.into(),
        }
    }
}

/// Reads a file. `name` is the file's own name, without its folder.
pub fn surface(name: &str, text: &str) -> Result<ModuleSurface, SurfaceError> {
    if parts(text) > MOST_PARTS {
        let message = format!("it has more than {MOST_PARTS} parts; split it");
        return Err(SurfaceError::new(message));
    }
    if depth(text) > DEEPEST {
        let message = format!("its brackets are more than {DEEPEST} deep");
        return Err(SurfaceError::new(message));
    }
    let (name, text) = (name.to_owned(), text.to_owned());
    let work = thread::Builder::new()
        .name("surface".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || GLOBALS.set(&Globals::new(), || read(&name, text)))
        .map_err(|error| SurfaceError::new(format!("it cannot be read now: {error}")))?;
    work.join()
        .unwrap_or_else(|_| Err(SurfaceError::new("the parser gave up on it")))
}

/// At least as many as the parser finds.
fn parts(text: &str) -> usize {
    let mut count = 0;
    let mut in_word = false;
    for byte in text.bytes() {
        let word = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 128;
        if word {
            count += usize::from(!in_word);
        } else if !byte.is_ascii_whitespace() {
            count += 1;
        }
        in_word = word;
    }
    count
}

/// How deep brackets are, wherever they stand.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

fn read(name: &str, text: String) -> Result<ModuleSurface, SurfaceError> {
    let map = Rc::<SourceMap>::default();
    let file = map.new_source_file(Rc::new(FileName::Custom(name.to_owned())), text);
    let syntax = Syntax::Typescript(TsSyntax {
        tsx: name.ends_with(".tsx"),
        decorators: true,
        ..TsSyntax::default()
    });
    let mut problems = Vec::new();
    let told = |error: &swc_ecma_parser::error::Error| SurfaceError {
        line: Some(map.lookup_char_pos(error.span().lo).line),
        message: format!("it does not parse: {}", error.kind().msg()),
    };
    let module = parse_file_as_module(&file, syntax, EsVersion::latest(), None, &mut problems)
        .map_err(|error| told(&error))?;
    if let Some(problem) = problems.first() {
        return Err(told(problem));
    }
    let mut reader = SurfaceVisitor {
        found: exports(&module),
    };
    module.visit_with(&mut reader);
    Ok(reader.found)
}

struct SurfaceVisitor {
    found: ModuleSurface,
}

impl Visit for SurfaceVisitor {
    fn visit_str(&mut self, text: &Str) {
        self.found
            .texts
            .insert(text.value.to_string_lossy().into_owned());
    }

    fn visit_tpl(&mut self, template: &Tpl) {
        if let ([whole], true) = (template.quasis.as_slice(), template.exprs.is_empty()) {
            self.found.texts.insert(whole.raw.to_string());
        }
        template.visit_children_with(self);
    }

    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Expr(callee) = &call.callee
            && let Expr::Member(member) = &**callee
            && let MemberProp::Ident(method) = &member.prop
            && REQUIRES.contains(&method.sym.as_str())
            && let Some(first) = call.args.first()
            && let Expr::Lit(Lit::Str(key)) = &*first.expr
        {
            let key = key.value.to_string_lossy().into_owned();
            self.found.required_keys.insert(key);
        }
        call.visit_children_with(self);
    }
}

/// Methods of a configuration that fail without a value.
const REQUIRES: [&str; 8] = [
    "require",
    "requireBoolean",
    "requireNumber",
    "requireObject",
    "requireSecret",
    "requireSecretBoolean",
    "requireSecretNumber",
    "requireSecretObject",
];

fn exports(module: &Module) -> ModuleSurface {
    let mut found = ModuleSurface::default();
    let text = |value: &Str| value.value.to_string_lossy().into_owned();
    for item in &module.body {
        let ModuleItem::ModuleDecl(declaration) = item else {
            continue;
        };
        match declaration {
            ModuleDecl::Import(import) => {
                if !import.type_only {
                    found.imports.insert(text(&import.src));
                }
            }
            ModuleDecl::ExportDecl(export) => declared(&export.decl, &mut found),
            ModuleDecl::ExportNamed(named) => {
                if let Some(source) = &named.src {
                    found.imports.insert(text(source));
                }
                if named.type_only {
                    continue;
                }
                for specifier in &named.specifiers {
                    match specifier {
                        ExportSpecifier::Named(one) if one.is_type_only => {}
                        ExportSpecifier::Named(one) => {
                            let name = one.exported.as_ref().unwrap_or(&one.orig);
                            found.exports.insert(exported(name));
                        }
                        ExportSpecifier::Namespace(one) => {
                            found.exports.insert(exported(&one.name));
                        }
                        ExportSpecifier::Default(_) => found.exports_more = true,
                    }
                }
            }
            ModuleDecl::ExportAll(all) => {
                found.imports.insert(text(&all.src));
                found.exports_more |= !all.type_only;
            }
            ModuleDecl::ExportDefaultDecl(_)
            | ModuleDecl::ExportDefaultExpr(_)
            | ModuleDecl::TsExportAssignment(_) => found.exports_more = true,
            ModuleDecl::TsImportEquals(_) | ModuleDecl::TsNamespaceExport(_) => {}
        }
    }
    found
}

fn exported(name: &ModuleExportName) -> String {
    match name {
        ModuleExportName::Ident(name) => name.sym.to_string(),
        ModuleExportName::Str(name) => name.value.to_string_lossy().into_owned(),
    }
}

fn declared(declaration: &Decl, found: &mut ModuleSurface) {
    match declaration {
        Decl::Var(variables) => {
            for one in &variables.decls {
                match &one.name {
                    Pat::Ident(name) => {
                        found.exports.insert(name.sym.to_string());
                    }
                    // `export const { a, b } = …`: which names, a pattern tells in many ways.
                    _ => found.exports_more = true,
                }
            }
        }
        Decl::Fn(function) => {
            found.exports.insert(function.ident.sym.to_string());
        }
        Decl::Class(class) => {
            found.exports.insert(class.ident.sym.to_string());
        }
        Decl::TsEnum(one) => {
            found.exports.insert(one.id.sym.to_string());
        }
        Decl::Using(_) => found.exports_more = true,
        Decl::TsInterface(_) | Decl::TsTypeAlias(_) | Decl::TsModule(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(set: &BTreeSet<String>) -> Vec<&str> {
        set.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_file_shows_its_exports_and_what_it_needs() {
        let found = surface(
            "index.ts",
            r#"import * as pulumi from "@pulumi/pulumi";
               import type { X } from "./types";
               import { helper } from "./helper";
               export type Kind = "a" | "b";
               export interface Shape { size: number }
               const config = new pulumi.Config();
               const size = config.requireNumber("size");
               const zone = config.get("zone") ?? `eu`;
               export const id = helper(size, zone), url = "x";
               const inner = 1;
               export { inner as shown };
               export function made() { return 1; }"#,
        )
        .unwrap();
        assert_eq!(names(&found.exports), ["id", "made", "shown", "url"]);
        assert!(!found.exports_more);
        assert_eq!(names(&found.required_keys), ["size"]);
        assert_eq!(names(&found.imports), ["./helper", "@pulumi/pulumi"]);
        assert!(found.texts.contains("zone") && found.texts.contains("eu"));
    }

    #[test]
    fn what_only_a_run_can_tell_is_said() {
        for open in [
            "export default async () => ({ a: 1 });",
            "export * from './other';",
            "export = { a: 1 };",
            "export const { a, b } = make();",
        ] {
            assert!(surface("index.ts", open).unwrap().exports_more, "{open}");
        }
    }

    #[test]
    fn what_does_not_parse_is_told_with_its_line() {
        let error = surface("index.ts", "const a = 1;\nconst b = ;\n").unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(error.message.contains("does not parse"), "{error}");
    }

    #[test]
    fn bombs_for_a_parser_are_refused_or_read_and_nothing_ends() {
        for bomb in [
            "(".repeat(15_000),
            format!("const a = {}1;", "!".repeat(15_000)),
            format!("const a = {}1;", "1+".repeat(9_000)),
            format!("const a = {}1;", "a=>".repeat(6_000)),
            format!("const a = b{};", ".c".repeat(9_000)),
            format!("{}1;", "if(a)".repeat(4_000)),
            "[".repeat(1_000_000),
        ] {
            // Read or refused: what matters is that the process is there afterwards.
            let _ = surface("index.ts", &bomb);
        }
        for refused in ["a;".repeat(15_000), "(".repeat(300)] {
            assert!(surface("index.ts", &refused).is_err());
        }
    }
}
