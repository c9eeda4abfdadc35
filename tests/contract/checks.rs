//! The findings of the check of a definition.

use std::cell::{Cell, RefCell};
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use training_job::api::{JobStatus, ReplicaSpecs, RunPolicy, variable};
use training_job::{
    Check, FieldErrors, Framework, Replica, RoleDefinition, RoleSpecs, Rule, Topology, TrainingJob,
};
use training_job_testing::check_definition;

use training_job_testbed::ListJob;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract");

#[test]
fn a_list_is_refused_by_its_rules_as_by_validate() {
    assert_eq!(check_definition::<ListJob>(HERE, "jobs"), [""; 0]);
}

/// A kind with the rules that a test sets, and a status from which a test can remove fields.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "RuledJob",
    namespaced,
    status = "JobStatus"
)]
#[serde(rename_all = "camelCase")]
struct RuledSpec {
    #[serde(default)]
    replica_specs: ReplicaSpecs,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    names: Vec<String>,
    /// As many as a rule may look at.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(max = 63)))]
    few: Vec<String>,
    #[serde(default)]
    size: Option<i64>,
    #[serde(default)]
    #[schemars(range(min = 1, max = 9))]
    level: Option<i32>,
}

thread_local! {
    static RULES: RefCell<Vec<Rule>> = const { RefCell::new(Vec::new()) };
    static LOSE: Cell<fn(&mut Value)> = const { Cell::new(|_| ()) };
    static ENV: Cell<fn() -> Vec<EnvVar>> = const { Cell::new(Vec::new) };
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

impl TrainingJob for RuledJob {
    const FRAMEWORK: Framework = Framework::new("ruled", "ruledjob-controller")
        .roles("replicaSpecs", &[RoleDefinition::new("Worker")]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.replica_specs)
    }
    fn run_policy(&self) -> RunPolicy {
        RunPolicy::default()
    }
    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }
    fn encode_status(&self, status: &JobStatus, _: Option<&Topology<'_>>) -> serde_json::Result<Value> {
        let mut encoded = serde_json::to_value(status)?;
        LOSE.get()(&mut encoded);
        Ok(encoded)
    }
    fn env(&self, _: &Topology<'_>, _: &Replica<'_>) -> Vec<EnvVar> {
        ENV.get()()
    }
    fn validate(&self, _: &Topology<'_>, errors: &mut FieldErrors) {
        if self.spec.mode.as_deref() == Some("Slow") {
            errors.push("spec.mode", "it is slow", "make it Fast");
        }
        errors.check_range("spec.level", self.spec.level, 1..=9);
    }
    fn checks() -> Vec<Check<Self>> {
        RULES.with_borrow(|rules| rules.iter().cloned().map(Check::from).collect())
    }
}

/// Checks a kind with this rule and a job with these lines in its spec. Returns the result of the check.
fn check(name: &str, rule: Rule, lines: &str) -> Result<Vec<String>, String> {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("checks").join(name);
    let _ = fs::remove_dir_all(&base);
    fs::create_dir_all(&base).unwrap();
    let job = format!(
        "apiVersion: example.com/v1\nkind: RuledJob\nmetadata: {{name: job}}\nspec:\n  replicaSpecs:\n    \
         Worker: {{template: {{spec: {{containers: [{{name: ruled, image: i}}]}}}}}}\n{lines}"
    );
    fs::write(base.join("job.yaml"), job).unwrap();
    RULES.set(vec![rule]);
    let run = catch_unwind(|| check_definition::<RuledJob>(&base, "."));
    run.map_err(|panic| *panic.downcast::<String>().unwrap())
}

fn finding(name: &str, rule: Rule, lines: &str) -> Option<String> {
    check(name, rule, lines).err()
}

fn found(name: &str, rule: Rule, lines: &str) -> String {
    finding(name, rule, lines).unwrap()
}

#[test]
fn a_rule_that_agrees_with_validate_is_accepted() {
    let rule = || Rule::new("self.?mode.orValue('') != 'Slow'", "it is slow; make it Fast").at("mode");
    for (name, lines) in [("fine", ""), ("refused", "  mode: Slow\n")] {
        assert_eq!(finding(name, rule(), lines), None);
    }
}

#[test]
fn a_rule_that_does_not_parse_is_named() {
    let said = found("syntax", Rule::new("self.mode ==", "no"), "");
    assert!(
        said.contains("self.mode ==") && said.contains("cannot be parsed: "),
        "{said}"
    );
}

#[test]
fn a_rule_that_refuses_a_valid_job_is_reported_with_the_file() {
    let said = found(
        "stricter",
        Rule::new("self.?size.orValue(0) < 3", "no").at("size"),
        "  size: 3\n",
    );
    assert!(
        said.contains("./job.yaml: validate accepts it, but the rule "),
        "{said}"
    );
    assert!(said.ends_with("spec.size: no"), "{said}");
    let said = found("failing", Rule::new("self.size < 3", "no"), "");
    assert!(said.contains("evaluation error: No such key: size"), "{said}");
}

#[test]
fn another_message_for_the_same_field_is_reported() {
    let rule = Rule::new("self.?mode.orValue('') != 'Slow'", "too slow").at("mode");
    let said = found("words", rule, "  mode: Slow\n");
    assert!(
        said.contains(
            "different messages for one error\n  validate: spec.mode: it is slow; make it Fast\n  the rule "
        ),
        "{said}"
    );
    assert!(said.ends_with(": too slow"), "{said}");
}

#[test]
fn errors_without_a_rule_are_returned() {
    let uncovered = ["./job.yaml: spec.mode: it is slow; make it Fast"];
    // It was to be "Slow", and is never false.
    let rule = Rule::new("self.?mode.orValue('') != 'Slwo'", "it is slow; make it Fast").at("mode");
    assert_eq!(check("never", rule.clone(), "  mode: Slow\n").unwrap(), uncovered);
    assert_eq!(check("never", rule, "").unwrap(), [""; 0]);
    // Beside what another rule refuses.
    let other = Rule::new("self.?mode.orValue('') != 'Slwo'", "no");
    assert_eq!(
        check("never", other, "  mode: Slow\n  level: 10\n").unwrap(),
        uncovered
    );
    let two = "  mode: Slow\n---\n{apiVersion: example.com/v1, kind: RuledJob, metadata: {name: other}}\n";
    let uncovered = check("two", Rule::new("true", "no"), two).unwrap();
    assert_eq!(
        uncovered[0],
        "./job.yaml (job): spec.mode: it is slow; make it Fast"
    );
}

#[test]
fn ranges_are_checked_by_hand_in_the_words_of_their_rules() {
    for level in [0, 1, 9, 10] {
        let uncovered = check("range", Rule::new("true", "no"), &format!("  level: {level}\n"));
        assert_eq!(uncovered.unwrap(), [""; 0], "{level}");
    }
}

/// Returns the findings for a kind that loses a part of the status.
fn lost(name: &str, lose: fn(&mut Value)) -> String {
    LOSE.set(lose);
    found(name, Rule::new("true", "no"), "")
}

#[test]
fn a_status_field_that_is_lost_is_reported() {
    for (lose, what) in [
        (
            (|status| status["recovery"]["replicas"] = serde_json::json!({})) as fn(&mut Value),
            r#"recovery.replicas: {"worker-0":8} was written, but nothing is read"#,
        ),
        (
            |status| status["restartCount"] = 3.into(),
            "restartCount: 4 was written, but 3 is read",
        ),
        (
            |status| status["conditions"][1]["reason"] = "Runs".into(),
            r#"conditions[1].reason: "JobRunning" was written, but "Runs" is read"#,
        ),
        (
            |status| status["recovery"]["roles"]["Other"] = 1.into(),
            "recovery.roles.Other: nothing was written, but 1 is read",
        ),
        (|status| *status = Value::Null, "status() is None"),
    ] {
        let said = lost("lossy", lose);
        let begin = "the definition of RuledJob:\n* status() must return what encode_status was given\n  ";
        assert!(said.starts_with(&format!("{begin}{what}\n")), "{said}");
    }
    let said = lost("unreadable", |status| *status = "done".into());
    assert!(
        said.contains("a job with the status that encode_status writes cannot be read: "),
        "{said}"
    );
}

#[test]
fn errors_without_a_rule_are_reported_beside_other_errors() {
    let said = found("missing", Rule::new("self.mode ==", "no"), "  mode: Slow\n");
    assert!(
        said.contains("which is allowed:\n  ./job.yaml: spec.mode: it is slow; make it Fast"),
        "{said}"
    );
}

#[test]
fn rules_that_need_a_server_are_not_evaluated() {
    for rule in [
        "self.?size.orValue(0) == oldSelf.?size.orValue(1)",
        "isQuantity(self.few[0]) && quantity(self.few[0]).isLessThan(quantity('0'))",
    ] {
        assert_eq!(finding("server", Rule::new(rule, "no"), ""), None);
    }
}

#[test]
fn a_folder_without_jobs_is_an_error() {
    let run = catch_unwind(|| check_definition::<RuledJob>(HERE, "jobs"));
    let said = run.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*said, "no job of kind RuledJob is in jobs");
}

#[test]
fn objects_that_an_api_server_rejects_are_named() {
    ENV.set(|| vec![variable("A B=C", "1")]);
    let said = found("rejected", Rule::new("true", "no"), "");
    assert!(
        said.contains("./job.yaml: the API server rejects Pod job-worker-0: ")
            && said.contains("env[0].name"),
        "{said}"
    );
}

#[test]
fn hooks_that_return_something_else_each_time_are_found() {
    ENV.set(|| {
        CALLS.set(CALLS.get() + 1);
        vec![variable("SEED", CALLS.get().to_string())]
    });
    let said = found("random", Rule::new("true", "no"), "");
    assert!(
        said.contains(
            "./job.yaml: the hooks return another Pod job-worker-0 at each call \
             (first at spec.containers[0].env[0].value); derive everything from the job"
        ),
        "{said}"
    );
}
