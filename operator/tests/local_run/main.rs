//! `training-operator local run` as its user sees it: the binary, real MXNet and TVM, real signals.

mod clean_up;
mod kill;
mod limits;
mod manifest;
mod options;
mod ordinary_user;
mod processes;
mod run;
mod side_by_side;
mod signals;
mod terminal;
mod training;
mod trial;
