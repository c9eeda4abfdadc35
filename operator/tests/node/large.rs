//! The examples of frameworks whose images are large. `make test-node FRAMEWORKS=all` runs them all, and
//! `FRAMEWORKS=jax` those of JAX. The names of the tests begin with that of the framework.

use crate::trainings::trains;

#[tokio::test]
async fn pytorch_trains() {
    trains("pytorch/train").await;
}

#[tokio::test]
async fn jax_trains() {
    trains("jax/train").await;
}

#[tokio::test]
async fn paddle_trains() {
    trains("paddle/train").await;
}

#[tokio::test]
async fn tensorflow_trains_with_mirrored_workers() {
    trains("tensorflow/mirrored").await;
}

#[tokio::test]
async fn tensorflow_trains_with_servers() {
    trains("tensorflow/servers").await;
}
