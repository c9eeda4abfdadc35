//! MXJob.
