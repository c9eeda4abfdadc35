use kube::client::Body;
use kube::{Client, Resource};
use tokio::sync::watch;

use super::memory::Memory;
use super::operator::{Operator, Options};
use super::reconcile::KindOf;
use super::toy::{ToyJob, job};
use crate::watch::Event;

/// A kind of jobs, what it shares with others, and whether its first list is in.
struct Bench {
    operator: Operator,
    kind: KindOf<ToyJob>,
    listed: watch::Sender<bool>,
}

impl Bench {
    /// None of its calls is answered.
    fn new() -> Self {
        let deaf = |_| std::future::pending::<Result<http::Response<Body>, std::io::Error>>();
        let client = Client::new(tower::service_fn(deaf), "default");
        Self {
            operator: Operator::new(client, Options::default()).manage::<ToyJob>(),
            kind: KindOf::new(0),
            listed: watch::Sender::new(false),
        }
    }

    fn take(&self, event: Event<super::stored::Stored<ToyJob>>) {
        self.kind.take(&self.operator.shared, event, &self.listed);
    }

    /// The UIDs of the jobs of which something is remembered.
    fn remembered(&self) -> Vec<String> {
        self.kind.memory().keys().cloned().collect()
    }
}

#[tokio::test]
async fn what_is_remembered_of_a_job_goes_with_it() {
    let lists = |job| vec![Event::ListBegins, Event::Listed(job), Event::ListEnds];
    let ends = [
        vec![Event::Deleted(job("a", 7))],
        vec![Event::Applied(job("b", 7))],
        lists(job("b", 7)),
        vec![Event::ListBegins, Event::ListEnds],
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let bench = Bench::new();
        lists(job("a", 5)).into_iter().for_each(|event| bench.take(event));
        assert!(*bench.listed.borrow());
        bench.kind.memory().insert("a".to_owned(), Memory::default());
        bench.take(Event::Applied(job("a", 6)));
        assert_eq!(bench.remembered(), ["a"], "{number}: it has changed");
        end.into_iter().for_each(|event| bench.take(event));
        assert_eq!(bench.remembered(), [""; 0], "{number}");
    }
}

#[tokio::test]
async fn a_job_without_a_name_is_none() {
    let nameless = || {
        let mut job = job("a", 5);
        job.meta_mut().name = None;
        job
    };
    for event in [Event::Listed(nameless()), Event::Applied(nameless())] {
        let bench = Bench::new();
        bench.take(event);
        assert_eq!(bench.kind.jobs().all().count(), 0);
    }
}
