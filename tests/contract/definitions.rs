//! The definition of a kind: the same bounds and requirements as rules, and what is wrong with a kind itself.

use std::panic::catch_unwind;

use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RunPolicy};
use training_job::{
    Framework, ObjectDefinition, ObjectKind, Replica, RoleDefinition, RoleSpecs, Topology, TrainingJob,
    admission,
};

use training_job_testbed::ListJob;

fn spec<J: TrainingJob>() -> JSONSchemaProps {
    let definition = admission::definition::<J>().unwrap();
    let version = definition.spec.versions[0].clone();
    let root = version.schema.unwrap().open_api_v3_schema.unwrap();
    root.properties.unwrap()["spec"].clone()
}

/// The rules of a schema, as `expression => message`.
fn rules(schema: &JSONSchemaProps) -> Vec<String> {
    let rules = schema.x_kubernetes_validations.iter().flatten();
    rules
        .map(|rule| {
            let message = rule.message.clone().or(rule.message_expression.clone());
            format!("{} => {}", rule.rule, message.unwrap())
        })
        .collect()
}

#[test]
fn a_list_has_the_rules_of_a_map() {
    let spec = spec::<ListJob>();
    let role = r#"(has(k.memberType) ? k.memberType : "").lowerAscii()"#;
    let rule = |condition: &str, role_in: &str, replicas: &str, message: &str| {
        format!(
            "!has(self.members) || !self.members.exists(k, k.?replicas.orValue(1) != 0) || \
             (!({condition}) || \
             self.members.exists(k, {role} in [{role_in}] && k.?replicas.orValue(1) {replicas}) || \
             self.members.exists(k, !has(k.memberType))) => {message}"
        )
    };
    let requirements = [
        rule(
            "!self.?detached.orValue(false)",
            r#""head", "client""#,
            "!= 0",
            "nobody hands out work; add a HEAD",
        ),
        rule(
            "self.?backoffLimit.orValue(0) > 5",
            r#""worker""#,
            ">= 3",
            "so many restarts are for more workers; use 3 or more",
        ),
    ];
    assert_eq!(rules(&spec), requirements);
    let members = &spec.properties.as_ref().unwrap()["members"];
    let of_members = rules(members);
    let needs = format!(
        "self.size() == 0 || self.exists(k, !has(k.memberType) || {role} == \"worker\" && k.?replicas.orValue(1) >= 2) => \
         must have at least 2 replicas of WORKER; set the replicas of WORKER to 2 or more"
    );
    assert!(of_members.contains(&needs), "{of_members:#?}");
    let Some(JSONSchemaPropsOrArray::Schema(member)) = &members.items else {
        panic!("it is a list");
    };
    let template = &member.properties.as_ref().unwrap()["template"]
        .properties
        .as_ref()
        .unwrap()["spec"];
    let Some(JSONSchemaPropsOrArray::Schema(container)) =
        &template.properties.as_ref().unwrap()["containers"].items
    else {
        panic!("it is a list");
    };
    assert!(
        !rules(container).iter().any(|rule| rule.contains("image")),
        "images are filled in"
    );
}

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "WrongJob",
    namespaced,
    status = "JobStatus"
)]
#[serde(rename_all = "camelCase")]
struct WrongSpec {
    #[serde(default)]
    replica_specs: ReplicaSpecs,
    #[serde(default)]
    workers: i32,
}

/// One kind for each thing that can be wrong with it.
macro_rules! wrong {
    ($name:ident, $framework:expr) => {
        wrong!($name, $framework, |_, _| {})
    };
    ($name:ident, $framework:expr, $fill_in:expr) => {{
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        struct $name(WrongJob);

        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = k8s_openapi::NamespaceResourceScope;
            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                "WrongJob".into()
            }
            fn group((): &()) -> std::borrow::Cow<'_, str> {
                "example.com".into()
            }
            fn version((): &()) -> std::borrow::Cow<'_, str> {
                "v1".into()
            }
            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                "wrongjobs".into()
            }
            fn meta(&self) -> &kube::api::ObjectMeta {
                &self.0.metadata
            }
            fn meta_mut(&mut self) -> &mut kube::api::ObjectMeta {
                &mut self.0.metadata
            }
        }

        impl kube::CustomResourceExt for $name {
            fn crd()
            -> k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition
            {
                WrongJob::crd()
            }
            fn crd_name() -> &'static str {
                WrongJob::crd_name()
            }
            fn api_resource() -> kube::api::ApiResource {
                WrongJob::api_resource()
            }
            fn shortnames() -> &'static [&'static str] {
                &[]
            }
        }

        impl TrainingJob for $name {
            const FRAMEWORK: Framework = $framework;

            fn replica_specs(&self) -> RoleSpecs<'_> {
                RoleSpecs::map(&self.0.spec.replica_specs).filled_in($fill_in)
            }
            fn run_policy(&self) -> RunPolicy {
                RunPolicy::default()
            }
            fn status(&self) -> Option<&JobStatus> {
                self.0.status.as_ref()
            }
            fn env(&self, _: &Topology<'_>, _: &Replica<'_>) -> Vec<EnvVar> {
                Vec::new()
            }
        }

        let error = admission::definition::<$name>().unwrap_err().to_string();
        let tested = catch_unwind(|| training_job_testing::snapshots::<$name>(".", "jobs", "snapshots"));
        assert_eq!(*tested.unwrap_err().downcast::<String>().unwrap(), error);
        error
    }};
}

const WORKERS: &[RoleDefinition] = &[RoleDefinition::new("Worker")];

const RIGHT: Framework = Framework::new("wrong", "wrongjob-controller").roles("replicaSpecs", WORKERS);

#[test]
fn contradictory_declarations_are_errors_of_the_definition() {
    let errors = [
        wrong!(NoRoles, Framework::new("wrong", "wrongjob-controller")),
        wrong!(
            NoController,
            Framework::new("wrong", "").roles("replicaSpecs", WORKERS)
        ),
        wrong!(BadContainer, RIGHT.main_container("The Container")),
        wrong!(BadPort, RIGHT.port("a-name-that-is-too-long", 1)),
        wrong!(NoField, RIGHT.roles("replicas", WORKERS)),
        wrong!(NoMap, RIGHT.roles("workers", WORKERS)),
        wrong!(AMap, RIGHT.roles_in_list("replicaSpecs", "type", WORKERS)),
        wrong!(
            Twice,
            RIGHT.roles(
                "replicaSpecs",
                &[RoleDefinition::new("Worker"), RoleDefinition::new("WORKER")]
            )
        ),
        wrong!(
            NoBounds,
            RIGHT.roles(
                "replicaSpecs",
                &[RoleDefinition::new("Worker").at_least(3).at_most(2)]
            )
        ),
        wrong!(
            NoSuchFirst,
            RIGHT.roles(
                "replicaSpecs",
                &[RoleDefinition::new("Worker").starts_after(&["Haed"])]
            )
        ),
        wrong!(
            Circle,
            RIGHT.roles(
                "replicaSpecs",
                &[
                    RoleDefinition::new("Head").starts_after(&["Worker"]),
                    RoleDefinition::new("Worker").starts_after(&["Head"])
                ]
            )
        ),
        wrong!(
            RolePort,
            RIGHT.roles(
                "replicaSpecs",
                &[RoleDefinition::new("Worker").ports(&[("rpc", 70_000)])]
            )
        ),
        wrong!(
            NamelessContainer,
            RIGHT.roles("replicaSpecs", &[RoleDefinition::new("Worker").container("")])
        ),
        wrong!(
            NoOwnField,
            RIGHT.roles_in_fields(&[RoleDefinition::new("Head").in_field("head")])
        ),
        wrong!(
            NoList,
            RIGHT.roles_in_fields(&[RoleDefinition::new("Worker").in_list("workers", "name")])
        ),
        wrong!(
            NoSpec,
            RIGHT.roles_in_fields(&[RoleDefinition::new("Worker").in_field("workers")])
        ),
        wrong!(
            OneField,
            RIGHT.roles_in_fields(&[
                RoleDefinition::new("Head").in_map("replicaSpecs"),
                RoleDefinition::new("Worker").in_map("replicaSpecs"),
            ])
        ),
        wrong!(
            EntryWithoutField,
            RIGHT.roles_in_fields(&[RoleDefinition::new("Worker")])
        ),
        wrong!(
            NoVolume,
            RIGHT.roles("replicaSpecs", WORKERS).objects(
                const {
                    &[
                        ObjectDefinition::new(ObjectKind::new("", "v1", "Service", "services"))
                            .mounted_at("config", "/etc/config"),
                    ]
                }
            )
        ),
        wrong!(
            MountedNowhere,
            RIGHT.roles("replicaSpecs", WORKERS).objects(
                const {
                    &[
                        ObjectDefinition::new(ObjectKind::new("", "v1", "Secret", "secrets"))
                            .mounted_at("key", "/etc/key")
                            .mounted_in(&["Haed"]),
                    ]
                }
            )
        ),
        wrong!(
            OrderOfAMap,
            RIGHT.roles(
                "replicaSpecs",
                const { &[RoleDefinition::new("Worker").in_order()] }
            )
        ),
        wrong!(
            NoNumber,
            RIGHT.roles_in_fields(
                const {
                    &[RoleDefinition::new("Worker")
                        .in_map("replicaSpecs")
                        .replicas_field("nodes")]
                }
            )
        ),
        wrong!(
            NoTemplate,
            RIGHT.roles_in_fields(
                const {
                    &[RoleDefinition::new("Worker")
                        .in_map("replicaSpecs")
                        .template_from("launcher")]
                }
            )
        ),
        wrong!(
            NumberedService,
            RIGHT.roles(
                "replicaSpecs",
                const { &[RoleDefinition::new("Head").at_most(1).service("worker-0")] }
            )
        ),
        wrong!(
            ServiceOfMany,
            RIGHT.roles(
                "replicaSpecs",
                const { &[RoleDefinition::new("Worker").service("all")] }
            )
        ),
        wrong!(ReservedPrefix, RIGHT.key_prefix("apps.k8s.io")),
        wrong!(NoneIfUnset, RIGHT, |_, spec| {
            spec.replicas.get_or_insert(0);
        }),
    ];
    let expected = [
        "WrongJob: must have at least one role; pass the field of the replica specs and its roles to Framework::roles",
        "WrongJob: controller \"\" must be a valid value of label training.kubeflow.org/operator-name; pass a controller such as \"myjob-controller\" to Framework::new",
        "WrongJob: container \"The Container\" must be a valid container name; pass a name of lower-case letters, digits and '-' to Framework::main_container",
        "WrongJob: port \"a-name-that-is-too-long\" 1 must have a valid name and number; pass a name of at most 15 lower-case letters, digits and '-', and a number from 1 to 65535 to Framework::port",
        "WrongJob: spec must have the field \"replicas\" (has replicaSpecs, workers); pass the field's name as in YAML to Framework::roles",
        "WrongJob: spec.workers must be a map or a list; make it api::ReplicaSpecs, or a list of entries that have `replicas` and `template`",
        "WrongJob: spec.replicaSpecs is a map; declare a map with Framework::roles and a list with Framework::roles_in_list",
        "WrongJob: duplicate role WORKER (case is ignored); remove one of them",
        "WrongJob: role Worker has a minimum of 3 and a maximum of 2 replicas; make the minimum at most the maximum",
        "WrongJob: role Worker starts after Haed, which is not a role; pass names of roles to RoleDefinition::starts_after",
        "WrongJob: role Head starts after itself; break the circle of RoleDefinition::starts_after",
        "WrongJob: port \"rpc\" 70000 of role Worker must have a valid name and number; pass names of at most 15 lower-case letters, digits and '-', and numbers from 1 to 65535 to RoleDefinition::ports",
        "WrongJob: container \"\" of role Worker must be a valid container name; pass a name of lower-case letters, digits and '-' to RoleDefinition::container; for the first container, whatever its name, call Framework::first_container, and not RoleDefinition::container",
        "WrongJob: spec must have the field \"head\" of role Head; pass the field's name as in YAML to RoleDefinition::in_field, in_map or in_list",
        "WrongJob: spec.workers must be a list; use RoleDefinition::in_field for a replica spec, in_map for a map, and in_list for a list",
        "WrongJob: the replica specs in spec.workers must have the field \"template\"; make them api::ReplicaSpec, or give them its fields",
        "WrongJob: field \"replicaSpecs\" of role Worker must be its own; give each role a field of its own, or declare one class of roles",
        "WrongJob: must have a field for the roles without a field of their own, and only for these; declare roles with Framework::roles, or all of them with fields of their own with Framework::roles_in_fields",
        "WrongJob: Service \"config\" cannot be mounted at \"/etc/config\"; mount a ConfigMap, a Secret or a PersistentVolumeClaim, with a name of lower-case letters, digits and '-', at an absolute path",
        "WrongJob: Secret \"key\" is mounted in Haed, which is not a role; pass names of roles to ObjectDefinition::mounted_in",
        "WrongJob: role Worker is in order, but its roles are no list; declare the roles with RoleDefinition::in_list, or use RoleDefinition::starts_after",
        "WrongJob: the entries of spec.replicaSpecs must have the field \"nodes\", the number of replicas; pass the field's name as in YAML to RoleDefinition::replicas_field",
        "WrongJob: spec.launcher must be the pod template of the roles Worker; pass the name of a field of type PodTemplateSpec with #[schemars(schema_with = \"pod_template\")], of api::schema, to RoleDefinition::template_from, for a list or map of roles",
        "WrongJob: service \"worker-0\" of role Head must be a valid name of its only replica's service; pass a name of lower-case letters, digits and '-' that does not end with a number to RoleDefinition::service, for a role of at most one replica",
        "WrongJob: service \"all\" of role Worker must be a valid name of its only replica's service; pass a name of lower-case letters, digits and '-' that does not end with a number to RoleDefinition::service, for a role of at most one replica",
        "WrongJob: key prefix \"apps.k8s.io\" must be a DNS name outside of kubernetes.io and k8s.io; pass a domain such as \"farm.example.com\" to Framework::key_prefix",
        "WrongJob: a Worker without a number of replicas has 0, but its definition fills in 1; remove the default with api::schema::without_default_replicas",
    ];
    assert_eq!(errors, expected);
}
