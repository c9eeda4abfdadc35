//! Real training on a real API server. `training-operator run` and `training-operator local node` are separate
//! processes, and MXNet, TVM, XGBoost and Open MPI run in the pods.

mod changes;
mod launcher;
mod losses;
mod node;
mod training;
