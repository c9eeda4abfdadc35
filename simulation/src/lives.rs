//! How fast the simulation is when nothing goes wrong: lives of jobs, from their creation to their deletion.

use http::Method;
use serde_json::json;

use crate::kubelet::Fate;
use crate::wire::{path, send};
use crate::world::{SMALL, World, on_paused_clock, train};

/// Jobs in one world.
pub const TOGETHER: u64 = 10;

/// Lets so many jobs of four pods live at once in one world: they are made, run, end well and are deleted.
///
/// # Panics
/// If one of them does not, or an invariant is broken.
pub fn live() {
    on_paused_clock(async {
        let world = World::new(|name, _| Fate::Succeeds(if name.contains("scheduler") { 15 } else { 10 }));
        let names: Vec<String> = (0..TOGETHER).map(|n| format!("job-{n}")).collect();
        for name in &names {
            let (code, why) = send(
                &world.cluster,
                Method::POST,
                &path("mxjobs", ""),
                &train(name, &SMALL),
            )
            .await;
            assert_eq!(code, 201, "{why}");
        }
        world.pass(30).await;
        let background = json!({"propagationPolicy": "Background"});
        for name in &names {
            assert_eq!(world.conditions(name), "Created Running=False Succeeded");
            let (code, why) = send(&world.cluster, Method::DELETE, &path("mxjobs", name), &background).await;
            assert_eq!(code, 200, "{why}");
        }
        world.pass(5).await;
        assert_eq!(world.pods_now(), [""; 0]);
        world.check();
    });
}
