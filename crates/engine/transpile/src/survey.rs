//! What is in a file before anything is taken out of it.
//!
//! Finds what a translation of one file alone could get wrong, and which of the exported names are
//! types only.

use std::collections::BTreeSet;

use swc_common::{SourceMap, Spanned};
use swc_ecma_ast::{
    AutoAccessor, CallExpr, Callee, Class, ClassMember, ClassProp, Decl, Decorator, ExportDecl,
    Expr, Ident, Key, Lit, MemberExpr, MemberProp, ModuleDecl, ModuleItem, Program, PropName,
    TsEnumDecl, TsEnumMemberId, TsModuleDecl, UsingDecl,
};
use swc_ecma_visit::{Visit, VisitWith};

use crate::options::{Jsx, TranslationOptions};
use crate::unsupported::Reason;

/// Names of what keeps functions as text, to run them elsewhere. The text of a translated function
/// depends on who translated it, and a change of text is a change of the resource.
const KEEP_FUNCTIONS: [&str; 5] = [
    "CallbackFunction",
    "createCallbackFunction",
    "createFunctionFromEventHandler",
    "serializeFunction",
    "serializeFunctionAsync",
];

const FUNCTIONS_AS_TEXT: &str =
    "functions are kept as text here (a dynamic provider or a callback function)";

pub(crate) struct Survey<'a> {
    map: &'a SourceMap,
    options: &'a TranslationOptions,
    problem: Option<Reason>,
    has_jsx: bool,
}

pub(crate) struct Findings {
    pub(crate) has_jsx: bool,
    pub(crate) types: Vec<String>,
}

pub(crate) fn survey(
    program: &Program,
    map: &SourceMap,
    options: &TranslationOptions,
) -> Result<Findings, Reason> {
    let mut survey = Survey {
        map,
        options,
        problem: None,
        has_jsx: false,
    };
    program.visit_with(&mut survey);
    match survey.problem {
        Some(problem) => Err(problem),
        None => Ok(Findings {
            has_jsx: survey.has_jsx,
            types: exported_types(program),
        }),
    }
}

impl Survey<'_> {
    /// The first problem is enough.
    fn refuse(&mut self, node: &impl Spanned, text: &str) {
        if self.problem.is_none() {
            let line = self.map.lookup_char_pos(node.span().lo).line;
            self.problem = Some(Reason::at(line, text));
        }
    }

    fn assigned_fields(&mut self, class: &Class) {
        let assigned = |member: &&ClassMember| match member {
            ClassMember::ClassProp(prop) => !prop.is_static && prop.value.is_some(),
            _ => false,
        };
        let private = |member: &ClassMember| matches!(member, ClassMember::PrivateProp(prop) if prop.value.is_some());
        let Some(first) = class.body.iter().find(assigned) else {
            return;
        };
        if class.body.iter().any(private) {
            self.refuse(
                first,
                "private and other fields of one class have initial values",
            );
        }
        let computed = |prop: &ClassProp| !prop.is_static && prop.key.is_computed();
        let computed = class
            .body
            .iter()
            .find(|member| member.as_class_prop().is_some_and(computed));
        if let Some(member) = computed {
            self.refuse(member, "the name of a field is computed");
        }
    }
}

impl Visit for Survey<'_> {
    fn visit_decorator(&mut self, decorator: &Decorator) {
        if !self.options.legacy_decorators {
            self.refuse(decorator, "decorators without experimentalDecorators");
        } else if self.options.decorator_metadata {
            self.refuse(decorator, "decorators with metadata about types");
        }
        decorator.visit_children_with(self);
    }

    fn visit_auto_accessor(&mut self, accessor: &AutoAccessor) {
        self.refuse(accessor, "an `accessor` field");
        if let Key::Private(_) = accessor.key {
            return;
        }
        accessor.visit_children_with(self);
    }

    fn visit_using_decl(&mut self, using: &UsingDecl) {
        self.refuse(using, "a `using` declaration");
    }

    fn visit_ts_enum_decl(&mut self, declaration: &TsEnumDecl) {
        if declaration.declare && declaration.is_const {
            self.refuse(
                declaration,
                "a const enum that is declared without a value to look it up in",
            );
        }
        let mut known = BTreeSet::new();
        for member in &declaration.members {
            if let Some(value) = &member.init
                && !is_constant(value, &known)
            {
                self.refuse(member, "an enum's value that needs other declarations");
            }
            known.insert(match &member.id {
                TsEnumMemberId::Ident(name) => name.sym.to_string(),
                TsEnumMemberId::Str(text) => text.value.to_string_lossy().into_owned(),
            });
        }
    }

    fn visit_ts_module_decl(&mut self, module: &TsModuleDecl) {
        // What is only declared is not there when the program runs.
        if !module.declare {
            module.visit_children_with(self);
        }
    }

    fn visit_class(&mut self, class: &Class) {
        if !self.options.define_fields {
            self.assigned_fields(class);
        }
        class.visit_children_with(self);
    }

    fn visit_jsx_element(&mut self, element: &swc_ecma_ast::JSXElement) {
        self.has_jsx = true;
        if self.options.jsx == Jsx::Kept {
            self.refuse(element, "JSX that the project wants to keep");
        }
        element.visit_children_with(self);
    }

    fn visit_jsx_fragment(&mut self, fragment: &swc_ecma_ast::JSXFragment) {
        self.has_jsx = true;
        if self.options.jsx == Jsx::Kept {
            self.refuse(fragment, "JSX that the project wants to keep");
        }
        fragment.visit_children_with(self);
    }

    fn visit_ident(&mut self, name: &Ident) {
        if KEEP_FUNCTIONS.contains(&name.sym.as_str()) {
            self.refuse(name, FUNCTIONS_AS_TEXT);
        }
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        if let MemberProp::Ident(name) = &member.prop {
            let text = name.sym.as_str();
            let dynamic = text == "dynamic" && member.obj.is_ident();
            if dynamic || KEEP_FUNCTIONS.contains(&text) {
                self.refuse(member, FUNCTIONS_AS_TEXT);
            }
        }
        member.visit_children_with(self);
    }

    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Expr(callee) = &call.callee
            && let Expr::Member(member) = callee.as_ref()
            && let MemberProp::Ident(name) = &member.prop
            && is_subscription(name.sym.as_str())
        {
            self.refuse(call, FUNCTIONS_AS_TEXT);
        }
        call.visit_children_with(self);
    }

    fn visit_prop_name(&mut self, name: &PropName) {
        if let PropName::Ident(name) = name
            && name.sym == "eventHandler"
        {
            self.refuse(name, FUNCTIONS_AS_TEXT);
        }
        name.visit_children_with(self);
    }

    fn visit_module_decl(&mut self, declaration: &ModuleDecl) {
        if let ModuleDecl::Import(import) = declaration
            && !import.type_only
            && import.src.value.to_string_lossy() == "@pulumi/pulumi/dynamic"
        {
            self.refuse(import, FUNCTIONS_AS_TEXT);
        }
        declaration.visit_children_with(self);
    }
}

/// `onEvent`, `onObjectCreated` and the like.
fn is_subscription(name: &str) -> bool {
    let rest = name.strip_prefix("on").and_then(|rest| rest.chars().next());
    rest.is_some_and(char::is_uppercase)
}

/// Whether the compiler and we see the same value: literals, sums of them, and earlier members.
fn is_constant(value: &Expr, known: &BTreeSet<String>) -> bool {
    match value {
        Expr::Lit(Lit::Str(_) | Lit::Num(_)) => true,
        Expr::Ident(name) => known.contains(name.sym.as_str()),
        Expr::Unary(unary) => is_constant(&unary.arg, known),
        Expr::Bin(binary) => is_constant(&binary.left, known) && is_constant(&binary.right, known),
        Expr::Paren(inner) => is_constant(&inner.expr, known),
        Expr::Tpl(template) => template.exprs.iter().all(|expr| is_constant(expr, known)),
        _ => false,
    }
}

/// Names that a module exports of which nothing is left when types are gone.
fn exported_types(program: &Program) -> Vec<String> {
    let Program::Module(module) = program else {
        return Vec::new();
    };
    let mut types = BTreeSet::new();
    let mut values = BTreeSet::new();
    for item in &module.body {
        let ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(ExportDecl { decl, .. })) = item else {
            continue;
        };
        match decl {
            Decl::TsInterface(declaration) => {
                types.insert(declaration.id.sym.to_string());
            }
            Decl::TsTypeAlias(declaration) => {
                types.insert(declaration.id.sym.to_string());
            }
            Decl::Class(declaration) => {
                values.insert(declaration.ident.sym.to_string());
            }
            Decl::TsEnum(declaration) => {
                values.insert(declaration.id.sym.to_string());
            }
            Decl::Fn(declaration) => {
                values.insert(declaration.ident.sym.to_string());
            }
            Decl::Var(declaration) => values.extend(
                swc_ecma_utils::find_pat_ids::<_, swc_ecma_ast::Id>(declaration)
                    .into_iter()
                    .map(|(name, _)| name.to_string()),
            ),
            _ => {}
        }
    }
    types.difference(&values).cloned().collect()
}
