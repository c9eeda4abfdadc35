//! What an API server estimates that a rule costs at worst, before it takes the definition.
//!
//! Costs are those of cel-go's `checker/cost.go` and of `apiserver/pkg/cel/library/cost.go` in Kubernetes 1.35: one for
//! about each step, by the largest sizes that the schema allows, times the number of values that the rule is for.

use std::cell::RefCell;
use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, LiteralValue, operators as op};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, ValidationRule,
};

use super::size::{self, Bound, REQUEST, Type};

/// The most that a rule may cost.
pub(super) const MOST: u64 = 10_000_000;
/// The most that all rules of a version may cost together.
pub(super) const MOST_OF_ALL: u64 = 100_000_000;

/// What an API server is to estimate that an expression costs at worst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCost {
    /// The version of the kind that has the rule.
    pub version: String,
    /// The field that has the rule, such as `spec.replicaSpecs[*].template`; empty for the object itself.
    pub path: String,
    /// The rule, or the expression of its message.
    pub expression: String,
    /// The estimate. A rule may cost 10,000,000, all of a version together 100,000,000.
    pub cost: u64,
    /// The bounds that are missing in the schema, so that much is assumed: `spec.names has no maxItems`.
    pub missing: Vec<String>,
    /// What is wrong with the expression, so that the API server does not take it at any cost.
    pub errors: Vec<String>,
}

/// What an API server is to estimate of each rule of a definition, and of each expression of a message.
///
/// It knows the language, Kubernetes' functions on strings, lists and regular expressions, and what parses a string
/// (`quantity`, `url`, `ip`, ...). A function that it does not know costs 1 here, and more on a server if it is one of the
/// libraries `sets` or `lists`, `cel.bind` or `validate`. It finds a field that is not in the schema, and does not check
/// types otherwise: what a server says of an expression of the wrong type, only a server does.
///
/// ```
/// # use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// # let definition: CustomResourceDefinition = serde_json::from_value(serde_json::json!({"spec": {
/// #     "group": "example.com", "scope": "Namespaced", "names": {"kind": "Toy", "plural": "toys"},
/// #     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
/// #         "type": "object", "properties": {"names": {
/// #             "type": "array", "items": {"type": "string"},
/// #             "x-kubernetes-validations": [{"rule": "self.all(n, n.startsWith('a'))", "message": "no"}],
/// #         }},
/// #     }}}],
/// # }})).unwrap();
/// let costs = training_job::testing::rule_costs(&definition);
/// assert_eq!(costs[0].missing, ["names has no maxItems: 1048575 are assumed"]);
/// assert!(costs[0].cost > 1_048_575);
/// ```
pub fn rule_costs(definition: &CustomResourceDefinition) -> Vec<RuleCost> {
    let mut costs = Vec::new();
    for version in &definition.spec.versions {
        let schema = version.schema.as_ref();
        if let Some(root) = schema.and_then(|s| s.open_api_v3_schema.as_ref()) {
            let root = with_metadata(root);
            let place = Place {
                path: String::new(),
                times: Some(1),
                missing: BTreeSet::new(),
            };
            walk(&root, &place, &mut |schema, place, rule| {
                let message = rule.message_expression.as_deref();
                for (expression, times) in [(Some(rule.rule.as_str()), true), (message, false)] {
                    let Some(expression) = expression else { continue };
                    costs.push(RuleCost {
                        version: version.name.clone(),
                        ..estimate(schema, place, rule, expression, times)
                    });
                }
            });
        }
    }
    costs
}

/// Rules see the object's own fields as the server has them, whatever the schema says.
fn with_metadata(root: &JSONSchemaProps) -> JSONSchemaProps {
    let text = |own: Option<&JSONSchemaProps>| JSONSchemaProps {
        type_: Some("string".to_owned()),
        x_kubernetes_validations: own.and_then(|own| own.x_kubernetes_validations.clone()),
        ..JSONSchemaProps::default()
    };
    let mut root = root.clone();
    let fields = root.properties.get_or_insert_default();
    for name in ["apiVersion", "kind"] {
        let own = text(fields.get(name));
        fields.insert(name.to_owned(), own);
    }
    let metadata = fields.entry("metadata".to_owned()).or_default();
    metadata.type_ = Some("object".to_owned());
    let own = metadata.properties.take().unwrap_or_default();
    let names = ["name", "generateName"];
    metadata.properties = Some(names.map(|name| (name.to_owned(), text(own.get(name)))).into());
    root
}

/// Functions that cost 1, or that are not known better here.
const OTHERS: [&str; 78] = [
    "add",
    "asApproximateFloat",
    "asInteger",
    "bind",
    "bool",
    "bytes",
    "charAt",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "distinct",
    "double",
    "duration",
    "endsWith",
    "equivalent",
    "family",
    "first",
    "flatten",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "hasValue",
    "int",
    "intersects",
    "isCanonical",
    "isGlobalUnicast",
    "isGreaterThan",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isURL",
    "isUnspecified",
    "last",
    "major",
    "masked",
    "matches",
    "minor",
    "named",
    "none",
    "optFlatMap",
    "optMap",
    "patch",
    "prefixLength",
    "quote",
    "range",
    "reverse",
    "sign",
    "size",
    "slice",
    "sort",
    "sortBy",
    "startsWith",
    "sub",
    "timestamp",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "type",
    "uint",
    "unwrap",
    "unwrapOpt",
    "validate",
];

/// Where a schema is, and of how many values.
struct Place {
    path: String,
    /// None if some list or map around it has no bound.
    times: Option<u64>,
    missing: BTreeSet<String>,
}

fn walk<'s>(
    schema: &'s JSONSchemaProps,
    place: &Place,
    found: &mut dyn FnMut(&'s JSONSchemaProps, &Place, &'s ValidationRule),
) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        found(schema, place, rule);
    }
    for (name, field) in schema.properties.iter().flatten() {
        let inner = Place {
            path: kube_syntax::field(&place.path, name),
            times: place.times,
            missing: place.missing.clone(),
        };
        walk(field, &inner, found);
    }
    for inner in size::items(schema).into_iter().chain(size::values(schema)) {
        let Bound { most, missing } = size::bound(schema);
        let mut within = place.missing.clone();
        within.extend(missing.map(|bound| format!("{} has no {bound}", place.path)));
        let place = Place {
            path: format!("{}[*]", place.path),
            times: place
                .times
                .filter(|_| missing.is_none())
                .map(|t| t.saturating_mul(most)),
            missing: within,
        };
        walk(inner, &place, found);
    }
}

fn estimate(
    schema: &JSONSchemaProps,
    place: &Place,
    rule: &ValidationRule,
    expression: &str,
    times: bool,
) -> RuleCost {
    let (mut cost, mut missing, mut errors) = (0, BTreeSet::new(), Vec::new());
    match super::rules::environment().compile(expression) {
        Err(error) => errors.push(format!("it does not parse: {error}")),
        Ok(program) => {
            let mut coster = Coster::new(schema, &place.path, rule.optional_old_self == Some(true));
            cost = coster.cost(program.expression()).cost;
            (missing, errors) = (coster.missing.into_inner(), coster.errors.into_inner());
        }
    }
    if times {
        let each = place.times.unwrap_or(REQUEST / (size::smallest(schema) + 1));
        cost = cost.saturating_mul(each);
        missing.extend(place.missing.iter().cloned());
    }
    RuleCost {
        version: String::new(),
        path: place.path.clone(),
        expression: expression.to_owned(),
        cost,
        missing: missing.into_iter().collect(),
        errors,
    }
}

/// Where a value comes from, by which the server looks for its size.
#[derive(Clone, Debug)]
enum Origin<'s> {
    /// A field, and its path.
    Field(&'s JSONSchemaProps, String),
    /// A key of a map, for which the server has no size.
    Key,
    /// A field that the server looks for in vain.
    Nowhere,
    /// It was made, or the server loses track of it.
    Lost,
}

/// What is known of an expression.
#[derive(Clone, Debug)]
struct Node<'s> {
    cost: u64,
    type_: Type<'s>,
    origin: Origin<'s>,
    /// Its size, where the expression itself says it.
    size: Option<u64>,
    /// The size of each of its elements, likewise.
    element: Option<u64>,
}

impl<'s> Node<'s> {
    fn new(cost: u64, type_: Type<'s>) -> Self {
        Self {
            cost,
            type_,
            origin: Origin::Lost,
            size: None,
            element: None,
        }
    }

    fn sized(self, size: u64) -> Self {
        let size = Some(size);
        Self { size, ..self }
    }
}

struct Coster<'s> {
    root: &'s JSONSchemaProps,
    path: &'s str,
    variables: Vec<(String, Node<'s>)>,
    missing: RefCell<BTreeSet<String>>,
    errors: RefCell<Vec<String>>,
}

/// A part of a size, rounded up: a tenth for going through a string.
fn part(size: u64, of: u64) -> u64 {
    size.div_ceil(of)
}

fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.max(b?))
}

impl<'s> Coster<'s> {
    fn new(root: &'s JSONSchemaProps, path: &'s str, optional_old: bool) -> Self {
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

    /// How large a value can be.
    fn size(&self, node: &Node<'_>) -> u64 {
        if let Some(size) = node.size {
            return size;
        }
        match &node.origin {
            Origin::Field(schema, path) => {
                let Bound { most, missing } = size::bound(schema);
                if let Some(missing) = missing {
                    let path = if path.is_empty() { "the object" } else { path };
                    let missing = format!("{path} has no {missing}: {most} are assumed");
                    self.missing.borrow_mut().insert(missing);
                }
                most
            }
            Origin::Key => 0,
            Origin::Nowhere | Origin::Lost if node.type_.is_scalar() => 1,
            Origin::Nowhere | Origin::Lost => self.unknown(),
        }
    }

    /// The size of what the server has no size for.
    fn unknown(&self) -> u64 {
        let lost = "what `.?`, `orValue` and lists made in the rule give has no size for the server, whatever the schema says: use `has` and `.`";
        self.missing.borrow_mut().insert(lost.to_owned());
        u64::MAX
    }

    /// How large each element of a list can be.
    fn element_size(&self, list: &Node<'s>) -> u64 {
        match &list.origin {
            Origin::Lost => self.unknown(),
            origin => self.size(&Node {
                origin: self.origin(origin, None),
                ..Node::new(0, list.type_.element())
            }),
        }
    }

    fn cost(&mut self, e: &IdedExpr) -> Node<'s> {
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
                // A look whether the field is there costs nothing.
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

    /// A field, without what it costs.
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
                    let error = format!("rules see no field {name} there, but {}", names.join(", "));
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

    /// Where a field comes from, or an element.
    fn origin(&self, from: &Origin<'s>, field: Option<&str>) -> Origin<'s> {
        match (from, field) {
            (Origin::Field(schema, path), Some(name)) => match size::property(schema, name) {
                Some((name, field)) => Origin::Field(field, kube_syntax::field(path, name)),
                None => Origin::Nowhere,
            },
            (Origin::Field(schema, path), None) => match size::items(schema).or(size::values(schema)) {
                Some(element) => Origin::Field(element, format!("{path}[*]")),
                None => Origin::Nowhere,
            },
            (Origin::Key | Origin::Nowhere, _) => Origin::Nowhere,
            // The server leaves out the first part of a path, which is `self` otherwise.
            (Origin::Lost, _) => Origin::Field(self.root, self.path.to_owned()),
        }
    }

    fn comprehension(&mut self, e: &ComprehensionExpr) -> Node<'s> {
        let range = self.cost(&e.iter_range);
        let start = self.cost(&e.accu_init);
        let is_map = matches!(range.type_, Type::Map(_));
        let origin = self.origin(&range.origin, None);
        let element = Node {
            // Where it comes from says more than what it was made of.
            size: range.element.filter(|_| matches!(origin, Origin::Nowhere)),
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
            // The name of a library, as in `optional.of`, costs nothing.
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

    fn method(&self, name: &str, on: &Node<'s>, arguments: &[Node<'s>]) -> Option<Node<'s>> {
        let argument = |n: usize| arguments.get(n).map_or(0, |argument| self.size(argument));
        let tenth = || part(self.size(on), 10);
        // An expression of a regular expression has four characters or so.
        let matching = || part(self.size(on).saturating_add(1), 10).saturating_mul(part(argument(0), 4));
        let texts = || Type::List(Box::new(Type::Text));
        Some(match name {
            "orValue" | "value" => match (&on.type_, arguments.first()) {
                (Type::Optional(of), None) => Node::new(1, (**of).clone()),
                (Type::Optional(of), Some(_)) if !matches!(**of, Type::Unknown) => {
                    Node::new(1, (**of).clone())
                }
                (_, other) => Node::new(1, other.map_or(Type::Unknown, |other| other.type_.clone())),
            },
            "or" => Node::new(1, on.type_.clone()),
            "matches" => Node::new(matching(), Type::Scalar),
            "find" => Node::new(matching(), Type::Text).sized(self.size(on)),
            "findAll" => Node::new(matching(), texts()).sized(self.size(on)),
            "contains" => Node::new(tenth().saturating_mul(part(argument(0), 10)), Type::Scalar),
            "startsWith" | "endsWith" => Node::new(part(argument(0), 10), Type::Scalar),
            "format" => Node::new(tenth(), Type::Text),
            "lowerAscii" | "upperAscii" | "trim" | "substring" => {
                Node::new(tenth(), Type::Text).sized(self.size(on))
            }
            "split" => Node::new(part(self.size(on), 5), texts()).sized(self.size(on)),
            "replace" => {
                let (size, from, to) = (self.size(on), argument(0), argument(1));
                let longest = match from {
                    0 => size.saturating_add(1).saturating_mul(to).saturating_add(size),
                    from => size.max(part(size, from).saturating_mul(to)),
                };
                Node::new(part(size, 5), Type::Text).sized(longest)
            }
            "join" => {
                let (count, element) = (self.size(on), self.element_size(on));
                let separators = argument(0).saturating_mul(count.saturating_sub(1));
                let size = count.saturating_mul(element).saturating_add(separators);
                Node::new(part(size, 10), Type::Text).sized(size)
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => match &on.type_ {
                Type::List(of) => {
                    let element = match **of {
                        Type::Text => part(self.element_size(on), 10),
                        _ => 0,
                    };
                    let gives = match name {
                        "max" | "min" | "sum" => (**of).clone(),
                        _ => Type::Scalar,
                    };
                    Node::new(self.size(on).saturating_mul(element.saturating_add(1)), gives)
                }
                _ => Node::new(tenth(), Type::Scalar),
            },
            _ => return None,
        })
    }

    /// What is called without a target, and what is not known.
    fn function(&self, name: &str, argument: Option<&Node<'s>>) -> Node<'s> {
        let type_ = || argument.map_or(Type::Unknown, |argument| argument.type_.clone());
        match (name, argument) {
            ("dyn", Some(argument)) => Node {
                cost: 1,
                ..argument.clone()
            },
            ("of" | "ofNonZeroValue", _) => Node::new(1, Type::Optional(Box::new(type_()))),
            ("string", _) => Node::new(1, Type::Text),
            (
                "quantity" | "isQuantity" | "semver" | "isSemver" | "url" | "ip" | "isIP" | "cidr" | "isCIDR",
                Some(text),
            ) => Node::new(part(self.size(text), 10), Type::Scalar),
            _ => {
                if !OTHERS.contains(&name) && !name.starts_with(|c: char| !c.is_ascii_alphabetic()) {
                    self.errors
                        .borrow_mut()
                        .push(format!("there is no function {name}"));
                }
                Node::new(1, Type::Scalar)
            }
        }
    }
}
