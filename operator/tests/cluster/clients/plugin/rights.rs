//! Each verb needs the rights that its help names, and no more.

use serde_json::{Value, json};

use super::{run, run_as, until};
use crate::clients::stage::Stage;

const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

const KINDS: [&str; 7] = [
    "mxjobs",
    "tfjobs",
    "xgboostjobs",
    "pytorchjobs",
    "jaxjobs",
    "paddlejobs",
    "mpijobs",
];

/// Returns the rights that a help text lists, as verb and resource. Those for `-f` are included if `follows`.
fn rights(help: &str, follows: bool) -> Vec<(String, String)> {
    let (_, listed) = help
        .split_once("\nRights")
        .unwrap_or_else(|| panic!("no rights in {help}"));
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let listed = match (listed.split_once("With -f"), follows) {
        (Some((always, _)), false) => always,
        _ => listed,
    };
    let words = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rights = words.filter_map(|words| match words[..] {
        [verb, resource] if VERBS.contains(&verb) => Some((verb.to_owned(), resource.to_owned())),
        _ => None,
    });
    rights.collect()
}

fn rule((verb, resource): &(String, String)) -> Value {
    match (resource.as_str(), resource.split_once('.')) {
        ("jobs", _) => {
            json!({"apiGroups": ["kubeflow.org", "mlkube.io"], "resources": KINDS, "verbs": [verb]})
        }
        (_, Some((plural, group))) => json!({"apiGroups": [group], "resources": [plural], "verbs": [verb]}),
        (resource, None) => json!({"apiGroups": [""], "resources": [resource], "verbs": [verb]}),
    }
}

/// A service account whose role the test replaces.
pub(super) struct Account<'a> {
    stage: &'a Stage,
    pub(super) kubeconfig: std::path::PathBuf,
}

impl<'a> Account<'a> {
    pub(super) async fn new(stage: &'a Stage) -> Self {
        stage.run(&["create", "serviceaccount", "user"]).await;
        stage
            .run(&["create", "role", "user", "--verb=get", "--resource=leases"])
            .await;
        let account = format!("--serviceaccount={}:user", stage.namespace);
        stage
            .run(&["create", "rolebinding", "user", "--role=user", &account])
            .await;
        let kubeconfig = stage
            .cluster
            .kubeconfig_for_service_account(&stage.namespace, "user")
            .await;
        Self { stage, kubeconfig }
    }

    /// Gives the account these rights, and no others.
    pub(super) async fn may(&self, rights: &[(String, String)], not: Option<&(String, String)>) {
        let rules: Vec<Value> = rights.iter().map(rule).collect();
        let patch = json!({ "rules": rules }).to_string();
        self.stage
            .run(&["patch", "role", "user", "--type=merge", "-p", &patch])
            .await;
        let client = self.stage.cluster.client_of(&self.kubeconfig).await;
        let name = |resource: &str| match resource {
            "jobs" => "mxjobs.kubeflow.org".to_owned(),
            resource => resource.to_owned(),
        };
        for (verb, resource) in rights {
            self.stage
                .cluster
                .wait_until_allowed(&client, &self.stage.namespace, verb, &name(resource))
                .await;
        }
        if let Some((verb, resource)) = not {
            self.stage
                .cluster
                .wait_until_refused(&client, &self.stage.namespace, verb, &name(resource))
                .await;
        }
    }
}

#[tokio::test]
async fn each_verb_needs_the_rights_of_its_help() {
    let stage = Stage::new("plugin-rights").await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    stage.all_run("spirals", 5, "0").await;
    until(&stage, "spirals", "Running").await;
    let account = Account::new(&stage).await;
    let words = [
        "list",
        "status mxjob/spirals",
        "logs mxjob/spirals --replica worker-0",
        "events mxjob/spirals",
        "report mxjob/spirals -o json",
        "explain mxjob/spirals",
        // The first list would answer a wait for running.
        "wait mxjob/spirals --for failed --timeout 1s",
        "scale mxjob/spirals --role worker=3",
        "suspend mxjob/spirals",
        "resume mxjob/spirals",
        "restart mxjob/spirals",
    ];
    for words in words {
        let words: Vec<&str> = words.split(' ').collect();
        let help = run(&stage, &[words[0], "--help"]).await.success();
        let rights = rights(&help, false);
        assert!(!rights.is_empty(), "{help}");
        let run = async || {
            let output = run_as(stage.cluster, &account.kubeconfig, &words).await;
            format!("{}{}", output.stdout, output.stderr)
        };
        // If the operator is fast, the first list already shows the suspension.
        let may_do_without = |right: &(String, String)| words[0] == "restart" && right.0 == "watch";
        for missing in rights.iter().filter(|right| !may_do_without(right)) {
            let others: Vec<_> = rights.iter().filter(|right| *right != missing).cloned().collect();
            account.may(&others, Some(missing)).await;
            let text = run().await;
            assert!(
                text.contains("not allowed"),
                "{words:?} without {missing:?}: {text}"
            );
        }
        account.may(&rights, None).await;
        let text = run().await;
        // The kinds of 2017 are none of the account's.
        let text = text.replace("note: left out, because you are not allowed to list them", "");
        assert!(!text.contains("not allowed"), "{words:?} with {rights:?}: {text}");
    }
    // A follower that lacks a right ends.
    for words in [
        "logs mxjob/spirals -f --replica worker-0",
        "events mxjob/spirals -f",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let help = run(&stage, &[words[0], "--help"]).await.success();
        let all = rights(&help, true);
        for missing in all.iter().filter(|right| !rights(&help, false).contains(right)) {
            let others: Vec<_> = all.iter().filter(|right| *right != missing).cloned().collect();
            account.may(&others, Some(missing)).await;
            let output = run_as(stage.cluster, &account.kubeconfig, &words).await;
            assert_eq!(output.code, 2, "{words:?}: {output:?}");
            let (verb, _) = missing;
            assert!(
                output.stderr.contains(&format!("not allowed to {verb}")),
                "{words:?} without {missing:?}: {output:?}"
            );
        }
    }
}
