//! A copy of the objects in a namespace, updated by watches.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The objects of a kind by name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// The objects in a namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) jobs: Objects,
    pub(crate) pods: Objects,
    pub(crate) services: Objects,
    pub(crate) events: Objects,
    /// Other objects that an operator may create, by section of the recordings.
    pub(crate) others: BTreeMap<&'static str, Objects>,
}

/// The other kinds of objects that operators create, beside pods and services: section of the recordings, group,
/// version, and kind.
pub(crate) const OTHERS: [(&str, &str, &str, &str); 9] = [
    ("configmaps", "", "v1", "ConfigMap"),
    ("secrets", "", "v1", "Secret"),
    ("jobs", "batch", "v1", "Job"),
    ("serviceaccounts", "", "v1", "ServiceAccount"),
    ("roles", "rbac.authorization.k8s.io", "v1", "Role"),
    ("rolebindings", "rbac.authorization.k8s.io", "v1", "RoleBinding"),
    (
        "horizontalpodautoscalers",
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
    ),
    (VOLCANO, "scheduling.volcano.sh", "v1beta1", "PodGroup"),
    ("podgroups", "scheduling.x-k8s.io", "v1alpha1", "PodGroup"),
];

/// The section of Volcano's PodGroups. Their plural is also that of the coscheduling plugin's PodGroups.
pub(crate) const VOLCANO: &str = "volcanopodgroups";

/// Returns the plural of a section's kind.
pub(crate) fn plural(section: &str) -> &str {
    if section == VOLCANO { "podgroups" } else { section }
}

/// Selects one collection of the held objects.
type Part = Box<dyn Fn(&mut Held) -> &mut Objects + Send + Sync>;

/// Follows a namespace until it is dropped.
pub(crate) struct Mirror {
    pub(crate) held: watch::Receiver<Held>,
    _tasks: JoinSet<()>,
}

impl Mirror {
    /// PodGroups are followed if they belong to this API group. A server has at most one definition of them.
    pub(crate) fn of(client: &Client, namespace: &str, jobs: ApiResource, gangs: &str) -> Self {
        let (sender, held) = watch::channel(Held::default());
        let mut tasks = JoinSet::new();
        let of = |group: &str, version: &str, kind: &str, plural: &str| ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}").trim_start_matches('/').to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let core = |kind: &str, plural: &str| of("", "v1", kind, plural);
        let kinds: [(ApiResource, Part); 4] = [
            (jobs, Box::new(|held| &mut held.jobs)),
            (core("Pod", "pods"), Box::new(|held| &mut held.pods)),
            (core("Service", "services"), Box::new(|held| &mut held.services)),
            (core("Event", "events"), Box::new(|held| &mut held.events)),
        ];
        let others = OTHERS
            .into_iter()
            .filter(|(_, group, _, kind)| *kind != "PodGroup" || *group == gangs);
        let others = others.map(|(section, group, version, kind)| {
            let part: Part = Box::new(|held| held.others.entry(section).or_default());
            (of(group, version, kind, plural(section)), part)
        });
        for (resource, part) in kinds.into_iter().chain(others) {
            let api = Api::namespaced_with(client.clone(), namespace, &resource);
            tasks.spawn(follow(api, sender.clone(), part));
        }
        Self { held, _tasks: tasks }
    }
}

async fn follow(api: Api<DynamicObject>, sender: watch::Sender<Held>, part: Part) {
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut listing = Objects::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing.clear(),
            Ok(Event::InitApply(object)) => {
                listing.insert(object.name_any(), value(object));
            }
            Ok(Event::InitDone) => {
                let all = std::mem::take(&mut listing);
                sender.send_if_modified(|held| {
                    let changed = *part(held) != all;
                    *part(held) = all;
                    changed
                });
            }
            Ok(Event::Apply(object)) => sender.send_modify(|held| {
                part(held).insert(object.name_any(), value(object));
            }),
            Ok(Event::Delete(object)) => sender.send_modify(|held| {
                part(held).remove(&object.name_any());
            }),
            // The loop starts another watch.
            Err(_) => {}
        }
    }
}

fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap()
}
