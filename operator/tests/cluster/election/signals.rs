//! The end of the process.

use training_job_testbed::cluster::{Fault, On, Signal};

use super::candidates::control_plane;
use crate::rig::jobs::job;
use crate::rig::stage::Stage;

#[tokio::test]
async fn a_signal_lets_the_operator_finish_reconciles_in_progress() {
    for (name, signal) in [("term", Signal::TERM), ("int", Signal::INT)] {
        let stage = Stage::of(control_plane().await, name).await;
        let held = stage.proxy.fault(On::call("create", "pods"), Fault::Held);
        let operator = stage.operator();
        stage.create(job("a", 2)).await;
        held.happened(2).await;
        operator.0.signal(signal);
        operator.0.wait_for_line("operator stopping").await;
        assert_eq!(operator.0.ended(), None);
        stage.create(job("b", 1)).await;
        held.lift();
        assert_eq!(operator.0.exit_code().await, 0);
        let last = operator.log().pop().unwrap();
        assert_eq!(last["message"], "stopped");
        assert_eq!(stage.pods_of("a").await.len(), 2);
        assert_eq!(
            stage.proxy.count(&On::writes().prefixed("b")),
            0,
            "nothing is begun"
        );
        // The next operator continues with the existing objects.
        let operator = stage.operator();
        stage.until_all_run("a", 2).await;
        stage.until_all_run("b", 1).await;
        stage.expect_no_harm();
        operator.expect_well();
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    for (name, signal, code) in [("term-twice", Signal::TERM, 143), ("int-twice", Signal::INT, 130)] {
        let stage = Stage::of(control_plane().await, name).await;
        let hole = stage.proxy.fault(On::call("create", "pods"), Fault::BlackHole);
        let operator = stage.operator();
        stage.create(job("a", 1)).await;
        hole.happened(1).await;
        operator.0.signal(signal);
        operator
            .0
            .wait_for_line("a second signal ends the process immediately")
            .await;
        operator.0.signal(signal);
        assert_eq!(operator.0.exit_code().await, code);
    }
}

#[tokio::test]
async fn before_the_first_list_it_ends_as_well() {
    let stage = Stage::of(control_plane().await, "early").await;
    let hole = stage.proxy.fault(On::call("list", "pods"), Fault::BlackHole);
    let operator = stage.operator();
    hole.happened(1).await;
    operator.0.signal(Signal::TERM);
    assert_eq!(operator.0.exit_code().await, 0);
}
