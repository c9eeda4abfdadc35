//! The directory of a control plane, which is removed when the test process and all programs have ended.

use std::fs;
use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The pipe closes when its last holder ends. Then no program can add a file to the directory that is being removed.
const SCRIPT: &str = r#"
directory=$1 kubectl=$2
shift 2
while read -r word name; do [ "$word" != namespace ] || set -- "$@" "$name"; done
[ $# = 0 ] || "$kubectl" --kubeconfig "$directory/admin.kubeconfig" delete namespace --wait=false "$@"
rm -rf -- "$directory"
"#;

/// A directory and the shell that removes it.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    janitor: Child,
    pipe: Option<PipeWriter>,
}

impl Directory {
    pub(super) fn new(kubectl: &Path) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("training-job-cluster-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Removes files of an earlier process with this process ID, which are left if its janitor was killed.
        let _ = fs::remove_dir_all(&path);
        let (reader, pipe) = io::pipe()?;
        let janitor = Command::new("sh")
            .args(["-c", SCRIPT, "janitor"])
            .args([&path, kubectl])
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C should end the tests, not the janitor.
            .process_group(0)
            .current_dir("/")
            .spawn()?;
        fs::create_dir_all(path.join("home"))?;
        Ok(Self {
            path,
            janitor,
            pipe: Some(pipe),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a handle that delays the removal.
    pub(super) fn hold(&self) -> io::Result<PipeWriter> {
        self.pipe().try_clone()
    }

    /// Deletes this namespace at the end.
    pub(super) fn delete_namespace(&self, name: &str) -> io::Result<()> {
        // A single write, because other tests write to the pipe, too.
        self.pipe().write_all(format!("namespace {name}\n").as_bytes())
    }

    fn pipe(&self) -> &PipeWriter {
        self.pipe.as_ref().expect("it is closed by drop alone")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.janitor.wait();
    }
}
