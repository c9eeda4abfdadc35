//! The in-memory API for the scripts.

use kube::Client;
use kube_memory::Cluster;

use crate::real;

/// One cluster for each script.
pub(crate) struct Memory {
    cluster: Cluster,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            cluster: Cluster::builder().rules().stored_kinds().build(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.cluster.client("default")
    }

    pub(crate) fn compact(&self) {
        self.cluster.compact();
    }

    /// Serves the kinds of `crds/`.
    pub(crate) async fn install_jobs(&self) {
        for definition in real::definitions() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let response = crate::play::post(&self.client(), path, &definition).await;
            assert_eq!(response.0, 201, "{}", response.1);
        }
    }
}
