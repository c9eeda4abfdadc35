//! Runs kubectl.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::control_plane::ControlPlane;
use super::process::Program;

/// The result of a run of kubectl.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Asserts that the exit code is 0, and returns the standard output.
    #[track_caller]
    pub fn success(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }
}

impl ControlPlane {
    /// Returns the path of kubectl.
    pub fn kubectl_path(&self) -> &Path {
        self.kubectl.as_ref()
    }

    fn kubectl_home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(super) fn kubectl_cache(&self) -> PathBuf {
        self.kubectl_home().join("cache")
    }

    /// Runs kubectl as the administrator in the repository's root.
    pub async fn kubectl(&self, arguments: &[&str]) -> Output {
        self.kubectl_with_input(arguments, "").await
    }

    /// Runs kubectl with this text as standard input.
    pub async fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Output {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = |name| self.directory.path().join(format!("kubectl-{count}.{name}"));
        let files = [file("in"), file("out"), file("err")];
        fs::write(&files[0], input).expect("the directory is ours");
        let script = r#"input=$1 output=$2 errors=$3; shift 3; exec "$@" <"$input" >"$output" 2>"$errors""#;
        let mut program = Program::new("sh")
            .args(["-c", script, "sh"])
            .args(&files)
            .args([&self.kubectl])
            .args(arguments)
            // A creation takes 0.25 s of CPU in place of 0.33 s.
            .env("GOGC", "off")
            .env("KUBECACHEDIR", self.kubectl_cache());
        if self.is_own() {
            // Plug-ins that sign in to other clusters need the real home directory.
            program = program.env("HOME", OsString::from(self.kubectl_home()));
        }
        let code = self.spawn(program).exit_code().await;
        let [stdout, stderr] = [1, 2].map(|n| {
            let bytes = fs::read(&files[n]).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        for file in files {
            let _ = fs::remove_file(file);
        }
        Output { code, stdout, stderr }
    }
}
