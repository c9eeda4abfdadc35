//! The text formats of metrics. The registry encodes OpenMetrics; older clients read the text format 0.0.4 of Prometheus.

/// The content type of OpenMetrics.
pub(super) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The content type of the older format.
pub(super) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns true if a client that sends this `Accept` header reads OpenMetrics.
pub(super) fn accepts_open_metrics(accept: &str) -> bool {
    accept
        .split(',')
        .any(|media| media.trim_start().starts_with("application/openmetrics-text"))
}

/// Converts OpenMetrics to the text format 0.0.4. There, the comments of a counter or an info have the name of its samples,
/// an info is a gauge, and no line marks the end.
pub(super) fn to_text_format(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.split_once(' ') {
                text += &format!("# HELP {name}{suffix} {help}\n");
            }
            text += &format!("# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with("# ") {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// A metric of an operator, for its documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricDescription {
    /// The name as in a query, such as `farm_operator_jobs_created_total`.
    pub name: String,
    /// The type: `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// The names of the labels, in order.
    pub labels: Vec<String>,
    /// The help text.
    pub help: String,
}

/// Returns the metrics in a text of format 0.0.4 in which each has a sample.
pub(super) fn describe(text: &str) -> Vec<MetricDescription> {
    let mut all: Vec<MetricDescription> = Vec::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            all.push(MetricDescription {
                name: name.to_owned(),
                kind: String::new(),
                labels: Vec::new(),
                help: help.trim_end_matches('.').to_owned(),
            });
        }
        let Some(last) = all.last_mut() else { continue };
        if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            kind.clone_into(&mut last.kind);
        } else if let Some((_, labels)) = line.split_once('{')
            && !line.starts_with('#')
            && last.labels.is_empty()
        {
            let names = labels.split("\",").filter_map(|label| label.split_once("=\""));
            let names = names.map(|(name, _)| name).filter(|name| *name != "le");
            last.labels = names.map(str::to_owned).collect();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
# HELP a_jobs Jobs that ended.
# TYPE a_jobs counter
a_jobs_total{job_namespace=\"x\",framework=\"y\"} 1
# HELP a_build The version.
# TYPE a_build info
a_build_info{version=\"1\"} 1
# HELP a_seconds Time.
# TYPE a_seconds histogram
a_seconds_sum{verb=\"get\"} 0.5
a_seconds_bucket{le=\"+Inf\",verb=\"get\"} 1
# EOF
";

    #[test]
    fn the_older_format_names_the_samples_in_its_comments() {
        assert_eq!(
            to_text_format(SAMPLE),
            "\
# HELP a_jobs_total Jobs that ended.
# TYPE a_jobs_total counter
a_jobs_total{job_namespace=\"x\",framework=\"y\"} 1
# HELP a_build_info The version.
# TYPE a_build_info gauge
a_build_info{version=\"1\"} 1
# HELP a_seconds Time.
# TYPE a_seconds histogram
a_seconds_sum{verb=\"get\"} 0.5
a_seconds_bucket{le=\"+Inf\",verb=\"get\"} 1
"
        );
    }

    #[test]
    fn a_description_has_the_labels_of_the_samples() {
        let all = describe(&to_text_format(SAMPLE));
        let lines: Vec<_> = all
            .iter()
            .map(|m| format!("{} {} {} {}", m.name, m.kind, m.labels.join(","), m.help))
            .collect();
        assert_eq!(
            lines,
            [
                "a_jobs_total counter job_namespace,framework Jobs that ended",
                "a_build_info gauge version The version",
                "a_seconds histogram verb Time",
            ]
        );
    }

    #[test]
    fn only_clients_that_name_open_metrics_get_it() {
        assert!(accepts_open_metrics(
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
        ));
        for accept in ["", "*/*", "text/plain;version=0.0.4"] {
            assert!(!accepts_open_metrics(accept), "{accept}");
        }
    }
}
