//! The examples of PyTorch, JAX and Paddle.

use std::fs;
use std::path::PathBuf;

use training_job_testbed::cluster::repository;

/// An example and its requirements.
#[derive(Clone, Copy)]
pub(crate) struct Example {
    /// The name of its folder and of its Python environment.
    pub(crate) framework: &'static str,
    pub(crate) name: &'static str,
    /// A line of its environment, before which variables can be inserted.
    variable: &'static str,
    /// The number of its ranks.
    pub(crate) ranks: usize,
}

pub(crate) const PYTORCH: Example = Example {
    framework: "pytorch",
    name: "circles",
    variable: "- {name: OMP_NUM_THREADS, value: \"1\"}",
    ranks: 3,
};
pub(crate) const JAX: Example = Example {
    framework: "jax",
    name: "rings",
    variable: "- {name: JAX_PLATFORMS, value: cpu}",
    ranks: 3,
};
pub(crate) const PADDLE: Example = Example {
    framework: "paddle",
    name: "waves",
    variable: "- {name: OMP_NUM_THREADS, value: \"1\"}",
    ranks: 2,
};

impl Example {
    pub(crate) fn folder(self) -> PathBuf {
        repository().join("examples").join(self.framework)
    }

    pub(crate) fn text(self) -> String {
        fs::read_to_string(self.folder().join("train.yaml")).unwrap()
    }

    /// Returns the example with a pause of this many seconds in each of its steps.
    pub(crate) fn slow(self, pause: &str) -> String {
        let (text, variable) = (self.text(), self.variable);
        let indent = text.lines().find(|line| line.contains(variable)).unwrap();
        let indent = &indent[..indent.find('-').unwrap()];
        let slow = text.replace(
            variable,
            &format!("- {{name: PAUSE, value: \"{pause}\"}}\n{indent}{variable}"),
        );
        assert_ne!(text, slow);
        slow
    }
}
