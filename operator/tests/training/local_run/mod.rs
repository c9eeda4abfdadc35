//! `training-operator local run` as users run it: the binary, real MXNet, TVM, XGBoost and Open MPI, and real
//! signals.

mod clean_up;
mod collective;
mod compact;
mod kill;
mod launcher;
mod limits;
mod mlkube;
mod options;
mod ordinary_user;
mod side_by_side;
mod signals;
mod terminal;
mod training;
