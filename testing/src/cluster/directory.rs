//! The directory of a control plane, which is gone when the test process and all programs are.

use std::fs;
use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The pipe ends when the last that holds it is gone: no program can put a file into what is being removed.
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
        // What an earlier process of this number could have left if even its janitor was killed.
        let _ = fs::remove_dir_all(&path);
        let (reader, pipe) = io::pipe()?;
        let janitor = Command::new("sh")
            .args(["-c", SCRIPT, "janitor"])
            .args([&path, kubectl])
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the tests.
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

    /// What holds up the removal.
    pub(super) fn hold(&self) -> io::Result<PipeWriter> {
        self.pipe().try_clone()
    }

    /// Has this namespace deleted at the end.
    pub(super) fn delete_namespace(&self, name: &str) -> io::Result<()> {
        // In one piece: other tests write, too.
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
