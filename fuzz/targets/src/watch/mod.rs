//! What an API server answers lists and watches with → the caches of the operator.

mod model;
mod script;
mod told;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};
use training_job::Options;
use training_job::controller::{Clock, fuzzing::Caches};
use training_job_mxnet::MXJob;

use model::Model;
use script::{Question, Script};

/// Longer than any script takes, with all its waits.
const DAY: Duration = Duration::from_secs(86_400);

/// A clock that stands still.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// Plays a script of answers, as `script` reads it, to the operator's watches, through the real client.
///
/// # Panics
/// * Something in the client or the operator does.
/// * The operator does not ask for all that the script has within a day, or asks in a loop without a wait.
/// * A watch does not go on from the version that was told last.
/// * The caches hold something else than what the answers say.
pub fn check(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(play(Script::read(bytes)));
}

async fn play(script: Script) {
    let script = Arc::new(script);
    let service = {
        let script = Arc::clone(&script);
        tower::service_fn(move |request| {
            let script = Arc::clone(&script);
            let question = Question::of(&request);
            async move { Ok::<_, std::convert::Infallible>(script.answer(&question).await) }
        })
    };
    let options = Options {
        clock: Arc::new(Noon),
        ..Options::default()
    };
    let caches = Caches::<MXJob>::new(Client::new(service, "ns"), options);
    let begun = Instant::now();
    tokio::select! {
        biased;
        () = caches.keep() => panic!("a watch has ended for good"),
        () = script.told() => {},
        () = sleep(DAY) => panic!("the operator does not ask for what is there: {:?}", script.left()),
    }
    script.was_asked_patiently(begun.elapsed());
    let model: &Model = &script.model();
    assert_eq!(caches.jobs(), model.jobs());
    model.compare(&caches.children());
}
