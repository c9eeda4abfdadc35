//! The init container that waits until the master's name resolves, as the Go operator v1.8.1 creates it
//! (`initcontainer.go`) for each worker. PyTorch itself waits for the master, so here the container is optional.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use training_job::{Replica, SettingDefinition, Topology};

use crate::environment::{MASTER, WORKER};

pub(crate) const IMAGE: SettingDefinition = SettingDefinition::new(
    "pytorch-init-container-image",
    "",
    "Image, with sh and nslookup, of an init container in which a PyTorchJob's workers wait until their master's name \
     resolves; alpine:3.10 if only --pytorch-init-container-max-tries is set. If neither is set, there is no such \
     container, because PyTorch itself waits",
);
pub(crate) const TRIES: SettingDefinition = SettingDefinition::new(
    "pytorch-init-container-max-tries",
    "",
    "Number of lookups of the master's name by that init container, one every 2 s; 100 if only its image is set",
);

/// Returns the init container of a worker, if a setting enables it and there is a master.
pub(crate) fn container(topology: &Topology<'_>, replica: &Replica<'_>) -> Option<Container> {
    let [image, tries] = [&IMAGE, &TRIES].map(|setting| topology.settings.get(setting));
    if image.is_empty() && tries.is_empty() || replica.role.name() != WORKER {
        return None;
    }
    let or = |text: &str, default: &str| if text.is_empty() { default } else { text }.to_owned();
    let (host, tries) = (topology.role(MASTER)?.host(0), or(tries, "100"));
    let wait = format!(
        "err=1;for i in $(seq {tries}); do if nslookup {host}; then err=0 && break; fi;echo waiting for master; sleep 2; done; exit $err"
    );
    let amounts = |cpu: &str, memory: &str| {
        let amounts = [("cpu", cpu), ("memory", memory)];
        BTreeMap::from(amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))))
    };
    Some(Container {
        name: "init-pytorch".to_owned(),
        image: Some(or(image, "alpine:3.10")),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(["sh", "-c", &wait].map(str::to_owned).into()),
        resources: Some(ResourceRequirements {
            limits: Some(amounts("100m", "20Mi")),
            requests: Some(amounts("50m", "10Mi")),
            ..ResourceRequirements::default()
        }),
        ..Container::default()
    })
}
