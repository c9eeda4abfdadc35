//! Commands in running pods, as `kubectl exec` starts them: for launchers that start a program in other pods by a
//! remote shell.
//!
//! No request to the agent or the API is needed. For each running pod there is a script that runs the command in the
//! environment of the pod's first container. For each namespace there is a program that finds the script. Input,
//! output and exit code are therefore the caller's own, and the command is among the processes that end with the
//! caller. The marker in its environment makes the command end with the pod as well, even if it leaves its process
//! group: see [`kill`](super::kill).

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::api::PodRef;
use super::kill::{CALLERS, MARKER};
use super::launch::{Launch, quoted};

/// Finds the script of the pod $1 among those in the namespace's folder, and runs the following words with it. The pod may
/// be named by its host name in the cluster, `POD.SERVICE.NAMESPACE.svc`. Options of ssh before it have no effect. Waits up
/// to a minute for a pod that is about to start.
const EXEC: &str = r#"#!/bin/sh
while :; do
    case $1 in
        -[BbcDEeFIiJLlmOoPpQRSWw]) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
pod=$1
case $1 in *.svc | *.svc.*) pod=${1%%.*} ;; esac
shift
rounds=600
until [ -x "$pods/$pod/enter" ]; do
    rounds=$((rounds - 1))
    if [ "$rounds" -eq 0 ]; then
        echo "pod $pod does not run here" >&2
        exit 1
    fi
    sleep 0.1
done
by=enter
[ ! -x "$pods/$pod/entrance" ] || by=entrance
exec "$pods/$pod/$by" "$*"
"#;

/// The folders of an agent's pods, which only the agent's user can enter. The guard process removes them.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    root: PathBuf,
}

impl Folders {
    /// # Errors
    /// The directory for temporary files cannot be written.
    pub(super) fn create() -> io::Result<Self> {
        let id = std::process::id();
        // A taken number belongs to another agent of this process, or of an earlier process that was killed.
        let roots = (0..1_000).map(|number| std::env::temp_dir().join(format!("pods-{id}-{number}")));
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for root in roots {
            match DirBuilder::new().mode(0o700).create(&root) {
                Ok(()) => return Ok(Self { root }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of the program that runs commands in the pods of a namespace.
    pub(super) fn exec(&self, namespace: &str) -> PathBuf {
        self.root.join("exec").join(namespace)
    }

    /// Returns the path of the program that runs commands in a pod.
    pub(super) fn enter(&self, namespace: &str, pod: &str) -> PathBuf {
        self.pod(namespace, pod).join("enter")
    }

    /// Returns a pod's own directory for temporary files.
    pub(super) fn temporary(&self, namespace: &str, pod: &str) -> PathBuf {
        self.pod(namespace, pod).join("tmp")
    }

    /// Returns the directory of a pod's volumes.
    pub(super) fn volumes(&self, namespace: &str, pod: &str) -> PathBuf {
        self.pod(namespace, pod).join("volumes")
    }

    /// Returns the directory of the stored output of a pod.
    pub(super) fn output(&self, namespace: &str, pod: &str) -> PathBuf {
        self.pod(namespace, pod).join("output")
    }

    fn pod(&self, namespace: &str, pod: &str) -> PathBuf {
        self.root.join("pods").join(namespace).join(pod)
    }

    /// Creates the directory for temporary files and the exec program. Also links the pod's address to its folder,
    /// because callers may have only the address: names in their arguments are replaced.
    pub(super) fn make(&self, pod: &PodRef, address: Ipv4Addr) -> io::Result<()> {
        fs::create_dir_all(self.temporary(&pod.namespace, &pod.name))?;
        let by_address = self.pod(&pod.namespace, &address.to_string());
        match symlink(&pod.name, by_address) {
            // The link exists since an earlier start: a name keeps its address.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let exec = self.exec(&pod.namespace);
        if exec.exists() {
            return Ok(());
        }
        fs::create_dir_all(self.root.join("exec"))?;
        let pods = self.root.join("pods").join(&pod.namespace);
        let pods = format!("\npods={}\npod=", quoted(&pods.to_string_lossy()));
        // Several pods may write the program at once, each from a file of its own.
        let part = self.pod(&pod.namespace, &pod.name).join("exec.part");
        write_script(&part, &exec, &EXEC.replacen("\npod=", &pods, 1))
    }

    /// Lets commands run in the pod, in the environment of the launched container, until the returned value is
    /// dropped.
    pub(super) fn open(&self, pod: &PodRef, launch: &Launch) -> io::Result<Opened> {
        let (folder, enter) = (
            self.pod(&pod.namespace, &pod.name),
            self.enter(&pod.namespace, &pod.name),
        );
        let part = folder.join("enter.part");
        if let Some(entrance) = &launch.entrance {
            write_script(
                &part,
                &folder.join("entrance"),
                &format!("#!/bin/sh\n{entrance}\n"),
            )?;
        }
        write_script(&part, &enter, &enter_script(launch))?;
        Ok(Opened(enter))
    }

    pub(super) fn remove(&self, pod: &PodRef) {
        // A pod that never started has no folder.
        let _ = fs::remove_dir_all(self.pod(&pod.namespace, &pod.name));
    }
}

/// A pod that commands can be run in.
pub(super) struct Opened(PathBuf);

impl Drop for Opened {
    fn drop(&mut self) {
        // The file is missing if the guard process was faster.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns a script that runs the command $1 in the container's directory and environment, with the markers of the
/// command's callers.
fn enter_script(launch: &Launch) -> String {
    let mut script = format!(
        "#!/bin/sh\ncd {} || exit 1\nexec /usr/bin/env -i \\\n",
        quoted(&launch.directory.to_string_lossy())
    );
    for (name, value) in &launch.env {
        script.push_str(&format!("    {} \\\n", quoted(&format!("{name}={value}"))));
    }
    script.push_str(&format!(
        "    {CALLERS}=\"${MARKER} ${CALLERS}\" /bin/sh -c \"$1\"\n"
    ));
    script
}

/// Writes a program completely or not at all, because other processes may be looking for it. `part` is its name until
/// it is complete.
fn write_script(part: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(part)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::set_permissions(part, Permissions::from_mode(0o700))?;
    fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_environment_is_the_containers_to_the_letter() {
        let folders = Folders::create().unwrap();
        let pod = PodRef {
            namespace: "ns".into(),
            name: "job-0".into(),
            uid: "u".into(),
        };
        let odd = "a 'b' \"c\" $HOME `d`\n\\e";
        let mut launch = Launch {
            program: String::new(),
            args: Vec::new(),
            env: vec![("ODD".into(), odd.into()), (MARKER.into(), "pod".into())],
            directory: folders.root().to_owned(),
            entrance: None,
        };
        folders.make(&pod, Ipv4Addr::LOCALHOST).unwrap();
        folders.make(&pod, Ipv4Addr::LOCALHOST).unwrap();
        let opened = folders.open(&pod, &launch).unwrap();
        let output = Command::new(folders.exec("ns"))
            .args(["-x", "-o", "ConnectionAttempts=10", "-p2222", "-p", "2222"])
            .args([
                "job-0.job.ns.svc",
                "printf %s \"$ODD\";",
                "pwd; echo $TRAINING_JOB_CALLERS; exit 7",
            ])
            .env(MARKER, "caller")
            .env("STRAY", "x")
            .output()
            .unwrap();
        let expected = format!("{odd}{}\ncaller\n", folders.root().display());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        assert_eq!(output.status.code(), Some(7));
        launch.entrance = Some("echo \"through $1\"".to_owned());
        let opened_again = folders.open(&pod, &launch).unwrap();
        let output = Command::new(folders.exec("ns"))
            .args(["job-0", "pwd;", "exit"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "through pwd; exit\n");
        drop((opened, opened_again));
        assert!(!folders.enter("ns", "job-0").exists());
        fs::remove_dir_all(folders.root()).unwrap();
    }

    #[test]
    fn pods_that_start_at_once_are_not_in_each_others_way() {
        let folders = Folders::create().unwrap();
        let together = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for number in 0..8_u8 {
                let (folders, together) = (&folders, &together);
                scope.spawn(move || {
                    // The threads wait for each other, so none may end before the last.
                    let mut made = Vec::new();
                    for namespace in 0..50 {
                        let pod = PodRef {
                            namespace: format!("ns-{namespace}"),
                            name: format!("job-{number}"),
                            uid: String::new(),
                        };
                        together.wait();
                        made.push(folders.make(&pod, Ipv4Addr::new(127, 64, 0, number)));
                    }
                    made.into_iter().for_each(|made| made.unwrap());
                });
            }
        });
        fs::remove_dir_all(folders.root()).unwrap();
    }

    #[test]
    fn only_the_user_can_read_files_that_may_be_secret() {
        let folders = Folders::create().unwrap();
        let other = Folders::create().unwrap();
        assert_ne!(folders.root(), other.root());
        for root in [folders.root(), other.root()] {
            assert_eq!(fs::metadata(root).unwrap().permissions().mode() & 0o777, 0o700);
            fs::remove_dir_all(root).unwrap();
        }
    }
}
