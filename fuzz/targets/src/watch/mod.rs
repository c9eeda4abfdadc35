//! Fuzzes the operator's caches: the input is an API server's responses to lists and watches.

mod model;
mod objects;
mod script;
mod server;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};
use training_job::Kind;
use training_job_controller::Options;
use training_job_controller::{Clock, fuzzing::Caches};
use training_job_mxnet::MXJob;

use model::Model;
use script::{ListOrWatch, Responses};
use server::Server;

/// Longer than any script takes, including all its waits.
const DAY: Duration = Duration::from_secs(86_400);

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// Responds to the operator's lists and watches from a script (see `script`), through the real client.
///
/// # Panics
/// * The client or the operator panics.
/// * The operator does not request all responses of the script within a day, or sends requests without a backoff.
/// * A watch does not continue from the last resource version.
/// * The caches differ from the model.
pub fn check(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(play(script::parse(bytes)));
}

async fn play(responses: Responses) {
    let server = Arc::new(Server::new(responses));
    let service = {
        let server = Arc::clone(&server);
        tower::service_fn(move |request| {
            let server = Arc::clone(&server);
            let request = ListOrWatch::from_request(&request);
            async move { Ok::<_, std::convert::Infallible>(server.response(&request).await) }
        })
    };
    let mut options = Options::default();
    options.clock = Arc::new(FixedClock);
    let caches = Caches::new(Kind::of::<MXJob>(), Client::new(service, "ns"), options);
    let begun = Instant::now();
    tokio::select! {
        biased;
        () = caches.keep() => panic!("a watch has ended for good"),
        () = server.all_responses_sent() => {},
        () = sleep(DAY) => panic!("the operator does not request all responses: {:?}", server.unused_responses()),
    }
    server.assert_backoff(begun.elapsed());
    let model: &Model = &server.take_model();
    assert_eq!(caches.jobs(), model.jobs());
    model.assert_children(&caches.children());
}
