//! Fields that are assigned rather than defined.
//!
//! Unless told otherwise, the compiler turns `class A { x = 1 }` into an assignment at the start of
//! the constructor and `class A { x }` into nothing. JavaScript would define both, hiding what a
//! parent class has set; resources set their outputs exactly so.

use swc_common::{DUMMY_SP, Span};
use swc_ecma_ast::{
    AssignExpr, AssignOp, AssignTarget, CallExpr, Callee, Class, ClassMember, ClassProp,
    Constructor, Expr, ExprOrSpread, ExprStmt, FunctionBody, MemberExpr, MemberProp, Param,
    ParamOrTsParamProp, Pat, PropName, RestPat, SimpleAssignTarget, Stmt, Super, ThisExpr,
};
use swc_ecma_utils::constructor::inject_after_super;
use swc_ecma_utils::private_ident;
use swc_ecma_visit::{VisitMut, VisitMutWith};

/// Moves initial values into constructors.
pub(crate) struct AssignFields;

impl VisitMut for AssignFields {
    fn visit_mut_class(&mut self, class: &mut Class) {
        class.visit_mut_children_with(self);
        let mut values = Vec::new();
        class.body.retain_mut(|member| match member {
            ClassMember::ClassProp(prop) if !prop.is_static => {
                values.extend(assignment(prop));
                false
            }
            ClassMember::ClassProp(prop) => prop.value.is_some(),
            _ => true,
        });
        if values.is_empty() {
            return;
        }
        let derived = class.super_class.is_some();
        let existing = class.body.iter_mut().find_map(|member| match member {
            ClassMember::Constructor(constructor) if constructor.body.is_some() => {
                Some(constructor)
            }
            _ => None,
        });
        match existing {
            Some(constructor) => inject_after_super(constructor, values),
            None => {
                let mut constructor = default_constructor(class.span, derived);
                inject_after_super(&mut constructor, values);
                class.body.insert(0, ClassMember::Constructor(constructor));
            }
        }
    }
}

fn assignment(prop: &mut ClassProp) -> Option<Box<Expr>> {
    let value = prop.value.take()?;
    let property = match &prop.key {
        PropName::Ident(name) => MemberProp::Ident(name.clone()),
        PropName::Str(text) => computed(Expr::Lit(text.clone().into())),
        PropName::Num(number) => computed(Expr::Lit(number.clone().into())),
        PropName::BigInt(number) => computed(Expr::Lit(number.clone().into())),
        PropName::Computed(name) => MemberProp::Computed(name.clone()),
    };
    let target = MemberExpr {
        span: prop.span,
        obj: Box::new(ThisExpr { span: DUMMY_SP }.into()),
        prop: property,
    };
    Some(Box::new(Expr::Assign(AssignExpr {
        span: prop.span,
        op: AssignOp::Assign,
        left: AssignTarget::Simple(SimpleAssignTarget::Member(target)),
        right: value,
    })))
}

fn computed(expr: Expr) -> MemberProp {
    MemberProp::Computed(swc_ecma_ast::ComputedPropName {
        span: DUMMY_SP,
        expr: Box::new(expr),
    })
}

/// `constructor(...args) { super(...args) }` for a class with a parent, else an empty one.
fn default_constructor(span: Span, derived: bool) -> Constructor {
    // A name of its own, so that it hides nothing that the values mention.
    let arguments = private_ident!("args");
    let rest = Pat::Rest(RestPat {
        span: DUMMY_SP,
        dot3_token: DUMMY_SP,
        arg: Box::new(Pat::Ident(arguments.clone().into())),
        type_ann: None,
    });
    let call = Stmt::Expr(ExprStmt {
        span: DUMMY_SP,
        expr: Box::new(Expr::Call(CallExpr {
            callee: Callee::Super(Super { span: DUMMY_SP }),
            args: vec![ExprOrSpread {
                spread: Some(DUMMY_SP),
                expr: Box::new(Expr::Ident(arguments)),
            }],
            ..CallExpr::default()
        })),
    });
    let parameter = ParamOrTsParamProp::Param(Param {
        span: DUMMY_SP,
        decorators: Vec::new(),
        pat: rest,
    });
    Constructor {
        span,
        key: PropName::Ident("constructor".into()),
        is_optional: false,
        params: if derived { vec![parameter] } else { Vec::new() },
        body: Some(FunctionBody {
            stmts: if derived { vec![call] } else { Vec::new() },
            ..FunctionBody::default()
        }),
        ..Constructor::default()
    }
}
