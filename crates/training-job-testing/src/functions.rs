//! Worst-case costs and results of function calls, as in `apiserver/pkg/cel/library/cost.go` of Kubernetes.

use super::estimate::{CostEstimator, Node, part};
use super::size::Type;

/// Functions that cost 1, or whose cost is not modeled here.
const UNIT_COST_FUNCTIONS: &str = "add asApproximateFloat asInteger bind bool bytes charAt compareTo contains containsCIDR containsIP distinct \
    double duration endsWith equivalent family first flatten getDate getDayOfMonth getDayOfWeek getDayOfYear \
    getEscapedPath getFullYear getHost getHostname getHours getMilliseconds getMinutes getMonth getPort getQuery \
    getScheme getSeconds hasValue int intersects isCanonical isGlobalUnicast isGreaterThan isInteger isLessThan \
    isLinkLocalMulticast isLinkLocalUnicast isLoopback isURL isUnspecified last major masked matches minor named \
    none optFlatMap optMap patch prefixLength quote range reverse sign size slice sort sortBy startsWith sub \
    timestamp transformList transformMap transformMapEntry type uint unwrap unwrapOpt validate";

impl<'s> CostEstimator<'s> {
    pub(super) fn method(&self, name: &str, on: &Node<'s>, arguments: &[Node<'s>]) -> Option<Node<'s>> {
        let argument = |n: usize| arguments.get(n).map_or(0, |argument| self.size(argument));
        let tenth = || part(self.size(on), 10);
        // One expression of a regular expression is assumed to have four characters.
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

    /// Returns the estimate of a call without a target, or of an unknown function.
    pub(super) fn function(&self, name: &str, argument: Option<&Node<'s>>) -> Node<'s> {
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
                if !UNIT_COST_FUNCTIONS.split(' ').any(|other| other == name)
                    && !name.starts_with(|c: char| !c.is_ascii_alphabetic())
                {
                    self.errors.borrow_mut().push(format!("unknown function {name}"));
                }
                Node::new(1, Type::Scalar)
            }
        }
    }
}
