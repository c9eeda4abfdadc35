//! The filters of the list.

use form_urlencoded::parse;

use crate::list::JobRow;

/// The filters of an address. An empty one selects all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) state: String,
    /// A part of the name or of the reason.
    pub(super) text: String,
}

impl Query {
    /// Reads the query of an address. Other keys mean nothing.
    pub(super) fn parse(query: &str) -> Self {
        let mut parsed = Self::default();
        for (key, value) in parse(query.as_bytes()) {
            let field = match &*key {
                "kind" => &mut parsed.kind,
                "namespace" => &mut parsed.namespace,
                "state" => &mut parsed.state,
                "text" => &mut parsed.text,
                _ => continue,
            };
            value.trim().clone_into(field);
        }
        parsed
    }

    fn selects(&self, row: &JobRow) -> bool {
        let is = |wanted: &str, value: &str| wanted.is_empty() || wanted.eq_ignore_ascii_case(value);
        let text = self.text.to_lowercase();
        // The kinds of 2017 differ from today's in case only.
        (self.kind.is_empty() || self.kind == row.kind)
            && (self.namespace.is_empty() || self.namespace == row.namespace)
            && is(&self.state, &row.state)
            && (row.name.to_lowercase().contains(&text) || row.why.to_lowercase().contains(&text))
    }
}

/// Returns the rows that a query selects, in their order.
pub(super) fn filter(mut rows: Vec<JobRow>, query: &Query) -> Vec<JobRow> {
    rows.retain(|row| query.selects(row));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(namespace: &str, kind: &str, name: &str, state: &str, why: &str) -> JobRow {
        JobRow {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            state: state.to_owned(),
            roles: Vec::new(),
            restarts: 0,
            restart_limit: None,
            created: None,
            started: None,
            finished: None,
            duration_seconds: None,
            progress: String::new(),
            why: why.to_owned(),
            resource: String::new(),
            is_deleted: false,
            is_of_history: false,
            uid: String::new(),
            age_seconds: None,
        }
    }

    fn names(query: &str) -> String {
        let rows = vec![
            row("ml", "MXJob", "train", "Running", ""),
            row("ml", "MxJob", "train-2017", "Failed", "worker-0: exit 1"),
            row("vision", "PyTorchJob", "resnet", "Failed", "worker-1: OOMKilled"),
        ];
        let selected = filter(rows, &Query::parse(query));
        selected
            .iter()
            .map(|row| row.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn each_filter_selects() {
        for (query, expected) in [
            ("", "train train-2017 resnet"),
            ("kind=&namespace=&state=&text=", "train train-2017 resnet"),
            ("other=1", "train train-2017 resnet"),
            ("kind=MXJob", "train"),
            ("namespace=vision", "resnet"),
            ("state=failed", "train-2017 resnet"),
            ("text=oomk", "resnet"),
            ("text=+TRAIN+", "train train-2017"),
            ("text=exit+1&state=Failed&namespace=ml", "train-2017"),
            ("text=exit+1&state=Running", ""),
        ] {
            assert_eq!(names(query), expected, "{query}");
        }
    }
}
