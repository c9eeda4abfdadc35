//! Files of ConfigMaps.

use serde_json::{Value, json};

use super::fake_api::Bench;
use crate::NodeConfig;

fn spec(script: &str) -> Value {
    json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "main", "image": "none", "command": ["sh", "-c", script],
            "volumeMounts": [{"name": "files", "mountPath": "/etc/job"}],
        }],
        "volumes": [{"name": "files", "configMap": {"name": "config"}}],
    })
}

#[tokio::test]
async fn a_running_pod_sees_changes_of_its_mounted_files() {
    let mut bench = Bench::with(NodeConfig::default(), |api| {
        api.config_map("config", "hosts", "one")
    });
    let script =
        "cat /etc/job/hosts; echo; until grep -q two /etc/job/hosts; do sleep 0.05; done; echo changed
        until [ -e /etc/job/others ]; do sleep 0.05; done; ls /etc/job";
    bench.api.create("job-0", "u1", &spec(script), json!({}));
    bench.line("one").await;
    bench.api.config_map("config", "hosts", "one two");
    bench.line("changed").await;
    bench.api.config_map("config", "others", "three");
    assert_eq!(
        bench.line("").await,
        "others",
        "the key hosts has gone, and its file with it"
    );
    bench.api.phase("job-0", "Succeeded").await;
}
