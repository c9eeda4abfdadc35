//! Custom resource definitions.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::Condition;
use tokio::time::{Instant, sleep};

use super::control_plane::ControlPlane;
use super::{WAIT_TIMEOUT, repository, wait};

impl ControlPlane {
    /// Applies `crds/` and awaits that the kinds are served. Once is enough; all but the first call await
    /// the same.
    pub async fn install_crds(&self) {
        let folder = repository().join("crds");
        self.definitions
            .get_or_init(|| self.apply_definitions(&folder))
            .await;
    }

    /// Applies the definitions of a folder, over those that are there, and awaits that the kinds are served.
    pub async fn apply_definitions(&self, folder: &Path) {
        self.apply(&["--recursive", "-f", &folder.display().to_string()])
            .await;
    }

    /// Applies only the definitions that an installation has by default, and awaits that the kinds are served.
    pub(super) async fn install_default_crds(&self) {
        let folder = repository().join("crds").display().to_string();
        self.apply(&["-f", &folder]).await;
    }

    async fn apply(&self, files: &[&str]) {
        let apply = ["apply", "--server-side", "--force-conflicts", "-o", "name"];
        let applied = self.kubectl(&[&apply[..], files].concat()).await.success();
        for line in applied.lines() {
            self.served(line.rsplit('/').next().unwrap_or_default()).await;
        }
        // kubectl looks for a category only in its cache of what is served.
        let _ = std::fs::remove_dir_all(self.kubectl_cache());
        self.start_manager();
    }

    /// Installs the definition of a gang scheduler's PodGroups, by its API group.
    pub async fn install_pod_groups(&self, group: &str) {
        let file = repository().join(format!("tests/compat/podgroups.{group}.yaml"));
        let apply = ["apply", "--filename", &file.display().to_string()];
        self.kubectl(&apply).await.success();
        self.served(&format!("podgroups.{group}")).await;
    }

    /// Awaits that the kind of a custom resource definition is served and discovered. `kubectl wait` does not do: it
    /// fails if it looks before the API server has written a first condition, and a kind whose definition is established
    /// is served some milliseconds later.
    ///
    /// # Panics
    ///
    /// If it is not after [`WAIT_TIMEOUT`].
    pub async fn served(&self, definition: &str) {
        let established = |d: Option<&CustomResourceDefinition>| is_crd_established().matches_object(d);
        let found = wait(Api::all(self.client()), definition, established).await;
        let spec = found.expect("an established definition is there").spec;
        let deadline = Instant::now() + WAIT_TIMEOUT;
        for version in spec.versions.iter().filter(|version| version.served) {
            let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
            let resource = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
            while let Err(error) = self.lists_and_names(&resource).await {
                assert!(
                    Instant::now() < deadline,
                    "{definition}: not served in {WAIT_TIMEOUT:?}: {error}"
                );
                sleep(Duration::from_millis(20)).await;
            }
        }
    }

    async fn lists_and_names(&self, resource: &ApiResource) -> Result<(), String> {
        let client = self.client();
        let known = client.list_api_group_resources(&resource.api_version).await;
        let known = known.map_err(|e| e.to_string())?;
        if !known.resources.iter().any(|r| r.name == resource.plural) {
            return Err("the API server does not name it".to_owned());
        }
        let all: Api<DynamicObject> = Api::all_with(client, resource);
        let list = all.list(&ListParams::default().limit(1)).await;
        list.map(drop).map_err(|e| e.to_string())
    }
}
