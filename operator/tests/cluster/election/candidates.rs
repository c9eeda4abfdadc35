//! Two operators that elect a leader.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use serde_json::Value;
use tokio::sync::OnceCell;
use training_job_testbed::cluster::{Audit, Call, ControlPlane, Options, Proxy, wait};
use training_operator_testing::operator::{Operator, command};

use crate::rig::stage::Stage;

/// Returns the control plane of these tests, whose audit log records all calls.
pub(crate) async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    let options = Options {
        audit: Some(Audit::All),
        ..Options::default()
    };
    SHARED.get_or_init(|| ControlPlane::start_at_once(options)).await
}

/// The lease duration in seconds, after which another operator replaces a silent leader.
pub(crate) const LEASE_SECONDS: i32 = 4;

const FLAGS: [&str; 6] = [
    "--enable-scheme=MXJob,TFJob",
    "--leader-elect",
    "--leader-election-lease-duration=4s",
    "--leader-election-renew-deadline=3s",
    "--leader-election-retry-period=500ms",
    "--leader-election-id=lease",
];

pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) operator: Operator,
    pub(crate) proxy: Proxy,
    user: String,
}

/// Two operators of one namespace, each with its own service account and proxy.
pub(crate) struct Election {
    pub(crate) stage: Stage<'static>,
    pub(crate) leader: Candidate,
    pub(crate) other: Candidate,
}

impl Election {
    /// Starts two operators, and waits until one leads and both report that they are ready.
    pub(crate) async fn start(name: &str) -> Self {
        Self::start_with(name, &[]).await
    }

    /// Starts two operators with further flags.
    pub(crate) async fn start_with(name: &str, flags: &[&str]) -> Self {
        let cluster = control_plane().await;
        let stage = Stage::of(cluster, name).await;
        let run = async |arguments: &[&str]| {
            let arguments = [arguments, &["--namespace", &stage.namespace]].concat();
            cluster.kubectl(&arguments).await.success();
        };
        run(&["apply", "-f", "manifests/base/role.yaml"]).await;
        let leases = "--resource=leases.coordination.k8s.io";
        run(&["create", "role", "leases", "--verb=get,create,update", leases]).await;
        let accounts = ["one", "two"].map(|name| format!("--serviceaccount={}:{name}", stage.namespace));
        for name in ["one", "two"] {
            run(&["create", "serviceaccount", name]).await;
        }
        for role in ["training-operator", "leases"] {
            let role_flag = format!("--role={role}");
            run(&[
                "create",
                "rolebinding",
                role,
                &role_flag,
                &accounts[0],
                &accounts[1],
            ])
            .await;
        }
        let one = Candidate::start(&stage, "one", flags).await;
        let two = Candidate::start(&stage, "two", flags).await;
        let holder = stage.holder(|_| true).await;
        let (leader, other) = if holder.starts_with("one_") {
            (one, two)
        } else {
            (two, one)
        };
        // It leads some milliseconds after its lease is stored.
        leader.takes_over(&stage).await;
        other.operator.ready().await;
        Self { stage, leader, other }
    }
}

impl Candidate {
    async fn start(stage: &Stage<'static>, name: &'static str, flags: &[&str]) -> Self {
        let cluster = stage.cluster;
        let kubeconfig = cluster
            .kubeconfig_for_service_account(&stage.namespace, name)
            .await;
        let client = cluster.client_of(&kubeconfig).await;
        for resource in ["pods", "leases.coordination.k8s.io"] {
            cluster
                .wait_until_allowed(&client, &stage.namespace, "create", resource)
                .await;
        }
        let proxy = cluster.proxy(&kubeconfig).await;
        let namespace = format!("--namespace={}", stage.namespace);
        let home = format!("--leader-election-namespace={}", stage.namespace);
        let flags = [&FLAGS[..], &[&namespace, &home], flags].concat();
        let program = command(proxy.kubeconfig(), &flags).env("HOSTNAME", name);
        Self {
            name,
            operator: Operator(cluster.spawn(program)),
            proxy,
            user: format!("system:serviceaccount:{}:{name}", stage.namespace),
        }
    }

    /// Returns the metric `training_operator_leader`.
    pub(crate) async fn leads(&self) -> f64 {
        self.operator.metric("training_operator_leader").await.unwrap()
    }

    /// Returns true if this candidate made the call.
    pub(crate) fn made(&self, call: &Call) -> bool {
        call.user == self.user
    }

    /// Waits until this candidate holds the lease and works.
    pub(crate) async fn takes_over(&self, stage: &Stage<'static>) -> LeaseSpec {
        stage
            .holder(|holder| holder.starts_with(&format!("{}_", self.name)))
            .await;
        self.operator
            .wait_for_metric("training_operator_leader", 1.0)
            .await;
        self.operator.ready().await;
        stage.lease().await
    }
}

/// Returns true if a call changes a job or one of its objects.
pub(crate) fn works(call: &Call) -> bool {
    let reads = matches!(&*call.verb, "get" | "list" | "watch");
    !reads && call.resource != "leases" && call.stage == "ResponseComplete"
}

/// Returns the calls since this candidate last acquired the lease, including the acquisition.
pub(crate) fn since_lease_of<'c>(candidate: &Candidate, calls: &'c [Call]) -> &'c [Call] {
    let got = |call: &Call| {
        let before = call
            .body
            .as_ref()
            .map_or(&Value::Null, |body| &body["spec"]["leaseTransitions"]);
        candidate.made(call)
            && call.resource == "leases"
            && call.code < 300
            && call.verb != "get"
            && before.is_number()
    };
    let first = calls.iter().position(got).expect("it got the lease");
    &calls[first..]
}

impl Stage<'static> {
    /// Waits for a lease holder that meets the condition.
    pub(crate) async fn holder(&self, wanted: impl Fn(&str) -> bool) -> String {
        let mut found = String::new();
        let api = kube::api::Api::<Lease>::namespaced(self.cluster.client(), &self.namespace);
        let look = |lease: Option<&Lease>| {
            let holder = lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref());
            holder.unwrap_or_default().clone_into(&mut found);
            !found.is_empty() && wanted(&found)
        };
        wait(api, "lease", look).await;
        found
    }

    /// Returns the current lease.
    pub(crate) async fn lease(&self) -> LeaseSpec {
        let api = kube::api::Api::<Lease>::namespaced(self.cluster.client(), &self.namespace);
        api.get("lease").await.unwrap().spec.unwrap()
    }

    /// Returns the calls of both operators in this namespace.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let all = self.cluster.audit().into_iter();
        all.filter(|call| call.namespace == self.namespace && call.user.starts_with("system:serviceaccount:"))
            .collect()
    }

    /// Checks that no pod and no service was created twice, and no pod deleted.
    pub(crate) fn expect_each_made_once(&self) {
        let calls = self.calls();
        let mut made: Vec<_> = calls
            .iter()
            .filter(|c| c.verb == "create" && matches!(&*c.resource, "pods" | "services") && c.code == 201)
            .map(|c| {
                let body = c.body.as_ref().unwrap();
                (&*c.resource, body["metadata"]["name"].as_str().unwrap())
            })
            .collect();
        let all = made.len();
        assert!(all > 0);
        made.sort_unstable();
        made.dedup();
        assert_eq!(made.len(), all);
        assert!(
            calls
                .iter()
                .all(|c| c.verb != "delete" || (&*c.resource, &*c.name) == ("services", "a-scheduler-0")),
            "only the address of the scheduler that ended is given back"
        );
    }
}
