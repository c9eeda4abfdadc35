#!/usr/bin/env python3
"""Prints manifests/monitoring/dashboard.json, the Grafana dashboard of the operator: `make dashboard`.

Needs the packages of tools/requirements/dashboard.txt. Panels are declared at the end of this file.
"""

import json
import math

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as models
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
# Series of the chosen operators, and of the chosen jobs. Without a label `namespace` all operators are shown.
OPERATOR = 'namespace=~"$operator"'
KIND = f'{OPERATOR}, framework=~"$kind"'
JOBS = f'{KIND}, job_namespace=~"$namespace"'
# Metrics of a process have no prefix, so this selects the processes of operators.
OURS = f"and on (job, instance) training_operator_build_info{{{OPERATOR}}}"
WIDTH = 24


def variable(name, label, metric_label, metric):
    everything = VariableOption(selected=True, text=["All"], value=["$__all"])
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": f"label_values({metric}, {metric_label})", "refId": "values"})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(everything)
    )


def with_queries(panel, title, description, queries, unit):
    for ref, (legend, expression) in zip("ABCD", queries.items()):
        query = prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(ref)
        panel.with_target(query.instant() if isinstance(panel, stat.Panel) else query.range())
    return panel.title(title).description(description).datasource(SOURCE).unit(unit)


def graph(title, description, queries, unit="short", stacked=False):
    legend = (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(models.LegendDisplayMode.TABLE)
        .placement(models.LegendPlacement.BOTTOM)
        .calcs(["lastNotNull", "max"])
    )
    tooltip = (
        common.VizTooltipOptions().mode(models.TooltipDisplayMode.MULTI).sort(models.SortOrder.DESCENDING)
    )
    panel = timeseries.Panel().min(0).height(8).legend(legend).tooltip(tooltip)
    panel.show_points(models.VisibilityMode.NEVER).line_width(1).fill_opacity(20 if stacked else 5)
    if stacked:
        panel.stacking(common.StackingConfig().mode(models.StackingMode.NORMAL))
    return with_queries(panel, title, description, queries, unit)


def number(title, description, expression, bad_from=None, bad_below=None, unit="short", legend=""):
    """Returns a panel with one number, red from one bound on or below the other."""
    steps = [Threshold(value=None, color="green" if bad_below is None else "red")]
    if bad_from is not None:
        steps.append(Threshold(value=bad_from, color="red"))
    if bad_below is not None:
        steps.append(Threshold(value=bad_below, color="green"))
    panel = (
        stat.Panel()
        .height(4)
        .graph_mode(models.BigValueGraphMode.NONE)
        .color_mode(models.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    )
    if legend:
        panel.text_mode(models.BigValueTextMode.NAME)
    return with_queries(panel, title, description, {legend: expression}, unit)


def quantiles(histogram, selector, by, window="$__rate_interval"):
    """Returns the queries for the median and the 9th decile of a histogram in a window."""
    labels = ", ".join(["le", *by])
    name = " ".join(f"{{{{{label}}}}}" for label in by)
    rate = f"sum by ({labels}) (rate({histogram}_bucket{{{selector}}}[{window}]))"
    return {f"{name} {text}": f"histogram_quantile({q}, {rate})" for q, text in ((0.5, "50 %"), (0.9, "90 %"))}


def increase(counter, selector, by, window="$__rate_interval"):
    return f"sum by ({by}) (increase({counter}{{{selector}}}[{window}]))"


ROWS = {
    "Overview": [
        number("Leaders", "Replicas that reconcile jobs. One per installation.",
               f"sum(training_operator_leader{{{OPERATOR}}}) or vector(0)", bad_below=1),
        number("Replicas", "Replicas that Prometheus scrapes.",
               f"count(training_operator_build_info{{{OPERATOR}}}) or vector(0)", bad_below=1),
        number("Running jobs", "Jobs in the state Running.",
               f'sum(training_operator_jobs{{{JOBS}, state="Running"}}) or vector(0)'),
        number("Failed jobs in 24 hours", "Jobs that failed within the last 24 hours.",
               f"sum(increase(training_operator_jobs_failed_total{{{JOBS}}}[24h])) or vector(0)"),
        number("Oldest job without pods", "Time for which an active job has waited for its pods.",
               f"max(training_operator_oldest_job_without_pods_seconds{{{OPERATOR}}})", bad_from=1800, unit="s"),
        number("CRDs missing", "CRDs of enabled kinds that are not installed.",
               f"sum(max by (namespace, resource) (training_operator_crd_missing{{{OPERATOR}}}))", bad_from=1),
    ],
    "Jobs": [
        graph("Jobs by state", "Current number of jobs.",
              {"{{state}}": f"sum by (state) (training_operator_jobs{{{JOBS}}})"}, stacked=True),
        graph("Jobs by kind", "Current number of jobs that have not ended.",
              {"{{framework}}": f'sum by (framework) (training_operator_jobs{{{JOBS}, state!~"Succeeded|Failed"}})'},
              stacked=True),
        graph("Ends of jobs", "Jobs that ended, by result.",
              {"succeeded": f"sum(increase(training_operator_jobs_successful_total{{{JOBS}}}[$__rate_interval]))",
               "failed": f"sum(increase(training_operator_jobs_failed_total{{{JOBS}}}[$__rate_interval]))"}),
        graph("Failures by namespace", "Jobs that failed.",
              {"{{job_namespace}}": increase("training_operator_jobs_failed_total", JOBS, "job_namespace")}),
        graph("Restarts by namespace", "Restarts of jobs, and of single replicas where these restart alone.",
              {"{{job_namespace}}": increase("training_operator_jobs_restarted_total", JOBS, "job_namespace")}),
        graph("Jobs created and deleted", "A stack of created jobs that are not deleted fills etcd: set ttlSecondsAfterFinished.",
              {"created": f"sum(increase(training_operator_jobs_created_total{{{JOBS}}}[$__rate_interval]))",
               "deleted": f"sum(increase(training_operator_jobs_deleted_total{{{JOBS}}}[$__rate_interval]))"}),
        graph("Startup time", "Time from the creation or resumption of a job to Running, of the jobs within an hour.",
              quantiles("training_operator_job_startup_seconds", KIND, ["framework"], "1h"), unit="s"),
        graph("Duration of jobs", "Time from the start of a job to its end, of the jobs that ended within a day.",
              quantiles("training_operator_job_duration_seconds", KIND, ["framework", "result"], "1d"), unit="s"),
        graph("Oldest job without pods", "Time for which an active job has waited for its pods: a quota, an admission "
              "webhook, or the queue of a gang scheduler.",
              {"{{namespace}}": f"max by (namespace) (training_operator_oldest_job_without_pods_seconds{{{OPERATOR}}})"},
              unit="s"),
        graph("Stalled jobs", "Jobs with the condition Stalled: they run and make no progress.",
              {"{{job_namespace}}": f"sum by (job_namespace) (training_operator_jobs_stalled{{{JOBS}}})"}),
        graph("Time since the last progress", "Of watched replicas, at each read of their output.",
              {text: f"histogram_quantile({q}, sum by (le) "
               f"(rate(training_operator_output_silence_seconds_bucket{{{OPERATOR}}}[30m])))"
               for q, text in ((0.5, "50 %"), (0.9, "90 %"))}, unit="s"),
    ],
    "Reconciles": [
        graph("Queue depth", "Jobs that wait in the work queue.",
              {"{{namespace}}": f"sum by (namespace) (training_operator_queue_depth{{{OPERATOR}}})"}),
        graph("Time in the queue", "Time that a job waited in the work queue.",
              quantiles("training_operator_queue_seconds", KIND, ["framework"]), unit="s"),
        graph("Duration of reconciles", "API calls included.",
              quantiles("training_operator_reconcile_seconds", KIND, ["framework"]), unit="s"),
        graph("Reconciles", "Reconciles per second.",
              {"{{framework}} {{result}}":
               f"sum by (framework, result) (rate(training_operator_reconcile_seconds_count{{{KIND}}}[$__rate_interval]))"},
              unit="ops"),
        graph("Reconcile errors", "Failed reconciles by reason. Conflicts are ordinary, and retried.",
              {"{{framework}} {{reason}}": increase("training_operator_reconcile_errors_total", KIND, "framework, reason")}),
        graph("Events dropped", "Events of jobs that were not stored, by cause.",
              {"{{cause}}": increase("training_operator_events_dropped_total", OPERATOR, "cause")}),
    ],
    "API server": [
        graph("Requests by code", "Requests per second; error without a response.",
              {"{{code}}": f"sum by (code) (rate(training_operator_api_requests_total{{{OPERATOR}}}[$__rate_interval]))"},
              unit="reqps", stacked=True),
        graph("Requests by verb and resource", "Requests per second.",
              {"{{verb}} {{resource}}":
               f"sum by (verb, resource) (rate(training_operator_api_requests_total{{{OPERATOR}}}[$__rate_interval]))"},
              unit="reqps"),
        graph("Latency", "Time from a request to the head of its response.",
              quantiles("training_operator_api_request_seconds", OPERATOR, ["verb"]), unit="s"),
        graph("Conflicts", "Writes that the API server rejected with 409 and the operator repeats.",
              {"conflicts": f"sum(increase(training_operator_api_conflicts_total{{{OPERATOR}}}[$__rate_interval]))"}),
        graph("Lists and failed watches", "A healthy watch needs one list.",
              {"lists of {{resource}}": increase("training_operator_lists_total", OPERATOR, "resource"),
               "failures of {{resource}}": increase("training_operator_watch_failures_total", OPERATOR, "resource")}),
        graph("Age of the last watch event", "A quiet watch gets a bookmark each minute.",
              {"{{resource}}": "time() - max by (resource) "
               f"(training_operator_watch_last_event_timestamp_seconds{{{OPERATOR}}})"}, unit="s"),
        graph("CRDs missing", "1 while the CRD of an enabled kind is not installed.",
              {"{{resource}}": f"max by (resource) (training_operator_crd_missing{{{OPERATOR}}})"}),
    ],
    "Processes": [
        graph("Leader", "1 for the replica that reconciles jobs.",
              {"{{namespace}}/{{pod}}": f"training_operator_leader{{{OPERATOR}}}"}),
        graph("Changes of the lease", "A leader that loses its lease could not renew it in time.",
              {"{{change}}": increase("training_operator_lease_changes_total", OPERATOR, "change")}),
        graph("CPU", "Cores, user and system.",
              {"{{namespace}}/{{pod}}": f"rate(process_cpu_seconds_total[$__rate_interval]) {OURS}"}),
        graph("Memory", "Resident memory.",
              {"{{namespace}}/{{pod}}": f"process_resident_memory_bytes {OURS}"}, unit="bytes"),
        graph("File descriptors", "Open file descriptors, and the maximum.",
              {"{{namespace}}/{{pod}} open": f"process_open_fds {OURS}",
               "{{namespace}}/{{pod}} maximum": f"process_max_fds {OURS}"}),
        graph("Uptime", "A replica that restarts again and again may exceed its memory limit.",
              {"{{namespace}}/{{pod}}": f"time() - process_start_time_seconds {OURS}"}, unit="s"),
        graph("History", "Finished jobs whose stories are kept by --history.",
              {"{{namespace}}/{{pod}}": f"training_operator_history_jobs{{{OPERATOR}}}"}),
        graph("Size of the history", "Stories that are kept by --history.",
              {"{{namespace}}/{{pod}}": f"training_operator_history_bytes{{{OPERATOR}}}"}, unit="bytes"),
        graph("Stories lost", "Failures to keep the story of a finished job, by cause.",
              {"{{cause}}": f"sum by (cause) (increase(training_operator_stories_lost_total{{{OPERATOR}}}[$__rate_interval]))"}),
        graph("Log lines lost", "Lines of the log that could not be written.",
              {"{{namespace}}/{{pod}}": f"increase(training_operator_log_lines_lost_total{{{OPERATOR}}}[$__rate_interval])"}),
        number("Versions", "Versions of the replicas.",
               f"count by (version) (training_operator_build_info{{{OPERATOR}}})", legend="{{version}}"),
    ],
}


def widths(panels):
    """Returns the widths of a row's panels: numbers share one line, three graphs are on each."""
    for panel in panels:
        if isinstance(panel, stat.Panel):
            numbers = sum(isinstance(other, stat.Panel) for other in panels)
            yield WIDTH // max(numbers, 3)
        else:
            yield WIDTH // 3


def build():
    board = (
        dashboard.Dashboard("Training operator")
        .uid("training-operator")
        .description("Training jobs and the operator that runs them. Alerts have runbooks in docs/users/runbooks.")
        .tags(["kubernetes", "training-operator"])
        .time("now-6h", "now")
        .refresh("1m")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(variable("operator", "Operator's namespace", "namespace", "training_operator_build_info"))
        .with_variable(variable("namespace", "Namespace of jobs", "job_namespace", "training_operator_jobs_created_total"))
        .with_variable(variable("kind", "Kind", "framework", "training_operator_jobs_created_total"))
    )
    number_of_panel = 0
    for title, panels in ROWS.items():
        number_of_panel += 1
        board.with_row(dashboard.Row(title).id(number_of_panel))
        for panel, width in zip(panels, widths(panels)):
            number_of_panel += 1
            board.with_panel(panel.id(number_of_panel).span(width))
    built = board.build()
    for model in built.templating.list_val:
        # Fields of variables that are intervals.
        model.auto = model.auto_count = model.auto_min = None
    return built


print(json.dumps(build(), cls=JSONEncoder, indent=2, sort_keys=True))
