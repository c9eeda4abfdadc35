//! Estimates the worst-case cost of an expression for each construct of the language, as in cel-go's
//! `checker/cost.go`. The server also computes the best case, but does not use it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, LiteralValue, operators as op};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::size::{self, Bound, Type};

/// The origin of a value, which the server uses to find its size.
#[derive(Clone, Debug)]
pub(super) enum Origin<'s> {
    /// A field with its path.
    Field(&'s JSONSchemaProps, String),
    /// A map's key, which has no size in the server.
    Key,
    /// A field that the server cannot find.
    Unresolvable,
    /// A computed value, or one whose origin the server cannot trace.
    Lost,
}

/// The estimate of an expression.
#[derive(Clone, Debug)]
pub(super) struct Node<'s> {
    pub(super) cost: u64,
    pub(super) type_: Type<'s>,
    pub(super) origin: Origin<'s>,
    /// The size, if the expression itself determines it.
    pub(super) size: Option<u64>,
    /// The size of each element, if the expression itself determines it.
    pub(super) element: Option<u64>,
}

impl<'s> Node<'s> {
    pub(super) fn new(cost: u64, type_: Type<'s>) -> Self {
        Self {
            cost,
            type_,
            origin: Origin::Lost,
            size: None,
            element: None,
        }
    }

    pub(super) fn sized(self, size: u64) -> Self {
        let size = Some(size);
        Self { size, ..self }
    }
}

pub(super) struct CostEstimator<'s> {
    root: &'s JSONSchemaProps,
    path: &'s str,
    variables: Vec<(String, Node<'s>)>,
    missing: RefCell<BTreeSet<String>>,
    pub(super) errors: RefCell<Vec<String>>,
}

/// Divides a size, rounding up, for example by 10 for the traversal of a string.
pub(super) fn part(size: u64, of: u64) -> u64 {
    size.div_ceil(of)
}

fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.max(b?))
}

impl<'s> CostEstimator<'s> {
    pub(super) fn new(root: &'s JSONSchemaProps, path: &'s str, optional_old: bool) -> Self {
        let this = Node {
            origin: Origin::Field(root, path.to_owned()),
            ..Node::new(1, Type::of(root).unwrap_or(Type::Unknown))
        };
        let mut old = this.clone();
        if optional_old {
            old.type_ = Type::Optional(Box::new(old.type_));
        }
        Self {
            root,
            path,
            variables: vec![("self".to_owned(), this), ("oldSelf".to_owned(), old)],
            missing: RefCell::default(),
            errors: RefCell::default(),
        }
    }

    /// Returns the missing bounds and the errors.
    pub(super) fn found(self) -> (BTreeSet<String>, Vec<String>) {
        (self.missing.into_inner(), self.errors.into_inner())
    }

    /// Returns the maximum size of a value.
    pub(super) fn size(&self, node: &Node<'_>) -> u64 {
        if let Some(size) = node.size {
            return size;
        }
        match &node.origin {
            Origin::Field(schema, path) => {
                let Bound { max, missing } = size::bound(schema);
                if let Some(missing) = missing {
                    let path = if path.is_empty() { "the object" } else { path };
                    let missing = format!("{path} has no {missing}, so {max} is assumed");
                    self.missing.borrow_mut().insert(missing);
                }
                max
            }
            Origin::Key => 0,
            Origin::Unresolvable | Origin::Lost if node.type_.is_scalar() => 1,
            Origin::Unresolvable | Origin::Lost => self.unknown(),
        }
    }

    /// Returns the size of a value that has no size in the server.
    fn unknown(&self) -> u64 {
        let lost = "the server has no size for results of `.?`, `orValue` and lists made in the rule, whatever the schema bounds, so use `has` and `.`";
        self.missing.borrow_mut().insert(lost.to_owned());
        u64::MAX
    }

    /// Returns the maximum size of each element of a list.
    pub(super) fn element_size(&self, list: &Node<'s>) -> u64 {
        match &list.origin {
            Origin::Lost => self.unknown(),
            origin => self.size(&Node {
                origin: self.origin(origin, None),
                ..Node::new(0, list.type_.element())
            }),
        }
    }

    pub(super) fn cost(&mut self, e: &IdedExpr) -> Node<'s> {
        match &e.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::String(text) => {
                    Node::new(0, Type::Text).sized(text.inner().chars().count() as u64)
                }
                LiteralValue::Bytes(bytes) => Node::new(0, Type::Text).sized(bytes.inner().len() as u64),
                _ => Node::new(0, Type::Scalar).sized(1),
            },
            Expr::Ident(name) => {
                let known = self.variables.iter().rfind(|(known, _)| known == name);
                let known = known.map_or(Node::new(1, Type::Unknown), |(_, node)| node.clone());
                Node { cost: 1, ..known }
            }
            Expr::Select(select) => {
                let from = self.cost(&select.operand);
                // A test for the presence of a field is free.
                let free = select.test || matches!(from.type_, Type::Optional(_));
                let cost = from.cost.saturating_add(u64::from(!free));
                Node {
                    cost,
                    ..self.select(&from, &select.field)
                }
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let mut node = Node::new(10, Type::List(Box::new(Type::Unknown)));
                node.element = Some(0);
                for element in &list.elements {
                    let element = self.cost(element);
                    node.cost = node.cost.saturating_add(element.cost);
                    node.element = node.element.max(Some(self.size(&element)));
                    node.type_ = Type::List(Box::new(element.type_));
                }
                node.sized(list.elements.len() as u64)
            }
            Expr::Map(map) => {
                Node::new(30, Type::Map(Box::new(Type::Unknown))).sized(map.entries.len() as u64)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Node::new(40, Type::Unknown),
        }
    }

    /// Returns the estimate of a field, with cost 0.
    fn select(&self, from: &Node<'s>, name: &str) -> Node<'s> {
        let (of, optional) = match &from.type_ {
            Type::Optional(of) => (&**of, true),
            of => (of, false),
        };
        let field = match of {
            Type::Object(schema) => {
                let field = size::property(schema, name).and_then(|(_, field)| Type::of(field));
                if field.is_none() && schema.x_kubernetes_embedded_resource != Some(true) {
                    let names = schema
                        .properties
                        .iter()
                        .flatten()
                        .map(|(name, _)| size::escape(name));
                    let names: Vec<_> = names.collect();
                    let error = format!("unknown field {name}; rules see {}", names.join(", "));
                    self.errors.borrow_mut().push(error);
                }
                field
            }
            Type::Map(of) => Some((**of).clone()),
            _ => None,
        };
        let field = field.unwrap_or(Type::Unknown);
        let field = if optional {
            Type::Optional(Box::new(field))
        } else {
            field
        };
        Node {
            origin: self.origin(&from.origin, Some(name)),
            ..Node::new(0, field)
        }
    }

    /// Returns the origin of a field, or of an element if `field` is `None`.
    fn origin(&self, from: &Origin<'s>, field: Option<&str>) -> Origin<'s> {
        match (from, field) {
            (Origin::Field(schema, path), Some(name)) => match size::property(schema, name) {
                Some((name, field)) => Origin::Field(field, kube_schema::field(path, name)),
                None => Origin::Unresolvable,
            },
            (Origin::Field(schema, path), None) => match size::items(schema).or(size::values(schema)) {
                Some(element) => Origin::Field(element, format!("{path}[*]")),
                None => Origin::Unresolvable,
            },
            (Origin::Key | Origin::Unresolvable, _) => Origin::Unresolvable,
            // The server drops the first part of a path, which is otherwise `self`.
            (Origin::Lost, _) => Origin::Field(self.root, self.path.to_owned()),
        }
    }

    fn comprehension(&mut self, e: &ComprehensionExpr) -> Node<'s> {
        let range = self.cost(&e.iter_range);
        let start = self.cost(&e.accu_init);
        let is_map = matches!(range.type_, Type::Map(_));
        let origin = self.origin(&range.origin, None);
        let element = Node {
            // The origin determines the size; the elements only count if the server cannot find a field.
            size: range.element.filter(|_| matches!(origin, Origin::Unresolvable)),
            origin,
            ..Node::new(1, range.type_.element())
        };
        let key = match (&range.origin, is_map) {
            (_, false) => Node::new(1, Type::Scalar),
            (origin, true) => Node {
                origin: match origin {
                    Origin::Field(..) => Origin::Key,
                    other => self.origin(other, None),
                },
                ..Node::new(1, Type::Text)
            },
        };
        let count = self.variables.len();
        self.variables.push((e.accu_var.clone(), start.clone()));
        match &e.iter_var2 {
            Some(second) => {
                let both = [(e.iter_var.clone(), key), (second.clone(), element)];
                self.variables.extend(both);
            }
            None => self
                .variables
                .push((e.iter_var.clone(), if is_map { key } else { element })),
        }
        let condition = self.cost(&e.loop_cond);
        let step = self.cost(&e.loop_step);
        let result = self.cost(&e.result);
        self.variables.truncate(count);
        let size = self.size(&range);
        let loops = size.saturating_mul(condition.cost.saturating_add(step.cost));
        let parts = [range.cost, start.cost, loops, result.cost];
        let cost = parts.into_iter().fold(0, u64::saturating_add);
        match start.type_ {
            Type::List(_) => Node {
                element: step.element,
                ..Node::new(cost, step.type_).sized(size)
            },
            _ => Node::new(cost, Type::Scalar).sized(1),
        }
    }

    fn call(&mut self, call: &CallExpr) -> Node<'s> {
        let arguments: Vec<Node<'s>> = call.args.iter().map(|argument| self.cost(argument)).collect();
        let target = call.target.as_deref().filter(|target| match &target.expr {
            // The name of a library, as in `optional.of`, is free.
            Expr::Ident(name) => self.variables.iter().any(|(known, _)| known == name),
            _ => true,
        });
        let target = target.cloned().map(|target| self.cost(&target));
        let name = call.func_name.as_str();
        if let (op::CONDITIONAL, [condition, yes, no]) = (name, &arguments[..]) {
            let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
            return Node {
                element: both(yes.element, no.element),
                ..Node::new(cost, yes.type_.clone()).sized(self.size(yes).max(self.size(no)))
            };
        }
        let done = match (name, &arguments[..], &target) {
            (_, [left, right], None) => self.operator(call, left, right),
            (_, _, Some(target)) => self.method(name, target, &arguments),
            _ => None,
        };
        let done = done.unwrap_or_else(|| self.function(name, arguments.first()));
        let costs = arguments.iter().chain(&target).map(|node| node.cost);
        Node {
            cost: costs.fold(done.cost, u64::saturating_add),
            ..done
        }
    }

    fn operator(&self, call: &CallExpr, left: &Node<'s>, right: &Node<'s>) -> Option<Node<'s>> {
        let is_text = matches!(left.type_, Type::Text) || matches!(right.type_, Type::Text);
        let is_list = matches!(left.type_, Type::List(_)) || matches!(right.type_, Type::List(_));
        let less = || part(self.size(left).min(self.size(right)), 10);
        let sum = || self.size(left).saturating_add(self.size(right));
        let optional = |of: Type<'s>| match of {
            Type::Optional(of) => Type::Optional(of),
            of => Type::Optional(Box::new(of)),
        };
        Some(match call.func_name.as_str() {
            op::LOGICAL_AND | op::LOGICAL_OR => Node::new(0, Type::Scalar),
            op::EQUALS | op::NOT_EQUALS => Node::new(less(), Type::Scalar),
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS if is_text => {
                Node::new(less(), Type::Scalar)
            }
            op::IN if matches!(right.type_, Type::List(_)) => Node::new(self.size(right), Type::Scalar),
            op::ADD if is_list => Node {
                element: both(left.element, right.element),
                ..Node::new(1, right.type_.clone()).sized(sum())
            },
            op::ADD if is_text => Node::new(part(sum(), 10), Type::Text).sized(sum()),
            op::INDEX => Node {
                origin: self.origin(&left.origin, None),
                size: left.element,
                ..Node::new(1, left.type_.element())
            },
            op::OPT_INDEX => Node::new(1, optional(left.type_.element())),
            op::OPT_SELECT => match call.args.get(1).map(|name| &name.expr) {
                Some(Expr::Literal(LiteralValue::String(name))) => {
                    Node::new(1, optional(self.select(left, name.inner()).type_))
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}
