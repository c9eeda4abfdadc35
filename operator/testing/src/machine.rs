//! The capacity of the machine for jobs that train.

use tokio::sync::Semaphore;

/// A permit for each concurrent job. Each job has up to five processes that start together.
pub static JOBS: Semaphore = Semaphore::const_new(2);
