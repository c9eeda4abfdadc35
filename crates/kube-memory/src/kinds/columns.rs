//! The columns of kinds in tables, as `kubectl get` prints them.

use serde_json::Value;

use crate::kinds::json_path::JsonPath;
use crate::object::json;

/// A column of a custom kind.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: JsonPath,
}

impl Column {
    fn age() -> Self {
        Self {
            name: "Age".to_owned(),
            type_: "date".to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            path: JsonPath::parse(".metadata.creationTimestamp").unwrap_or_default(),
        }
    }

    /// Returns the columns of a version of a CustomResourceDefinition: the age if it has none.
    pub(crate) fn of_version(version: &Value) -> Vec<Self> {
        let columns = json::array(version.get("additionalPrinterColumns")).map(|column| {
            let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default();
            Self {
                name: text("name").to_owned(),
                type_: text("type").to_owned(),
                format: text("format").to_owned(),
                description: text("description").to_owned(),
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
                path: JsonPath::parse(text("jsonPath")).unwrap_or_default(),
            }
        });
        let columns: Vec<_> = columns.collect();
        match columns.is_empty() {
            true => vec![Self::age()],
            false => columns,
        }
    }
}

/// The columns of a built-in kind after its name: name, type, and priority.
pub(crate) type BuiltInColumns = &'static [(&'static str, &'static str, i64)];

const AGE: (&str, &str, i64) = ("Age", "string", 0);

/// Returns the columns of a built-in kind.
pub(crate) fn of_built_in(kind: &str) -> BuiltInColumns {
    match kind {
        "Pod" => &[
            ("Ready", "string", 0),
            ("Status", "string", 0),
            ("Restarts", "string", 0),
            AGE,
            ("IP", "string", 1),
            ("Node", "string", 1),
            ("Nominated Node", "string", 1),
            ("Readiness Gates", "string", 1),
        ],
        "Service" => &[
            ("Type", "string", 0),
            ("Cluster-IP", "string", 0),
            ("External-IP", "string", 0),
            ("Port(s)", "string", 0),
            AGE,
            ("Selector", "string", 1),
        ],
        "Node" => &[
            ("Status", "string", 0),
            ("Roles", "string", 0),
            AGE,
            ("Version", "string", 0),
            ("Internal-IP", "string", 1),
            ("External-IP", "string", 1),
            ("OS-Image", "string", 1),
            ("Kernel-Version", "string", 1),
            ("Container-Runtime", "string", 1),
        ],
        "Namespace" => &[("Status", "string", 0), AGE],
        "ConfigMap" => &[("Data", "string", 0), AGE],
        "Secret" => &[("Type", "string", 0), ("Data", "string", 0), AGE],
        "ServiceAccount" => &[("Secrets", "string", 0), AGE],
        "ResourceQuota" => &[("Request", "string", 0), ("Limit", "string", 0), AGE],
        "Lease" => &[("Holder", "string", 0), AGE],
        "CustomResourceDefinition" => &[("Created At", "date", 0)],
        _ => &[AGE],
    }
}

/// The columns of events, which do not begin with the name.
pub(crate) const OF_EVENTS: BuiltInColumns = &[
    ("Last Seen", "string", 0),
    ("Type", "string", 0),
    ("Reason", "string", 0),
    ("Object", "string", 0),
    ("Subobject", "string", 1),
    ("Source", "string", 1),
    ("Message", "string", 0),
    ("First Seen", "string", 1),
    ("Count", "string", 1),
    ("Name", "string", 1),
];
