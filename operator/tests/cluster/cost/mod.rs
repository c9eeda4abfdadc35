//! The cost of jobs for the API server, counted in its audit log by the operator's user.

mod bill;
mod lives;
mod quiet;
