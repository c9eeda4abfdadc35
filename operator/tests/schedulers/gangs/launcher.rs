//! Jobs with a launcher that starts processes in their workers.

use super::process::{Gangs, Scheduler};
use crate::jobs::MPI;
use crate::stage::{Operators, Stage};

/// Without gangs the workers of both jobs would fill the cluster, and neither job would get its launcher.
async fn of_two_jobs_whose_workers_fill_the_cluster_one_has_its_launcher(scheduler: Scheduler) {
    let gangs = Gangs::shared(scheduler).await;
    let _alone = gangs.alone().await;
    let mut stage = Stage::with_gangs(gangs, scheduler, (MPI, Operators::Stay), (2, 7)).await;
    for name in ["a", "b"] {
        let mut job = stage.gang(name);
        job["spec"][MPI.specs]["Worker"]["replicas"] = 7.into();
        stage.create(&job).await;
    }
    let first = stage.one_runs(8).await;
    let second = if first == "a" { "b" } else { "a" };
    stage.turn();
    stage.finishes(&first, 8).await;
    stage.finishes(second, 8).await;
    stage.history.expect_at_most(14).await;
    stage.end();
}

mod volcano {
    use super::*;

    #[tokio::test]
    async fn of_two_jobs_whose_workers_fill_the_cluster_one_has_its_launcher() {
        super::of_two_jobs_whose_workers_fill_the_cluster_one_has_its_launcher(Scheduler::Volcano).await;
    }
}

mod coscheduling {
    use super::*;

    #[tokio::test]
    async fn of_two_jobs_whose_workers_fill_the_cluster_one_has_its_launcher() {
        super::of_two_jobs_whose_workers_fill_the_cluster_one_has_its_launcher(Scheduler::Coscheduling).await;
    }
}
