//! Runs as an ordinary user, on a machine whose only address is loopback.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use training_operator_testing::local_run::manifest::examples;
use training_operator_testing::local_run::run::Run;
use training_operator_testing::local_run::trial::Trial;
use training_operator_testing::venv::venv;

use super::training::{REPLICAS, expect_trained};

/// As root, this test proves that no privilege is needed and, if a network namespace can be created, that only
/// loopback addresses are needed. As an ordinary user, it proves the first by itself, and the second if that user may
/// create namespaces.
#[test]
fn no_privilege_and_no_network_is_needed() {
    let trial = Trial::new();
    let start = Start::possible_here();
    println!("{start:?}");
    let world = World::of(&start, &trial);

    let mut command = start.command();
    command
        .arg(&world.binary)
        .args(["local", "run", "--path"])
        .arg(&world.programs);
    command.arg(&world.manifest);
    command.env("HOME", &world.home).env("TMPDIR", &world.home);
    let mut run = Run::start(&mut command);
    let step = run.line(&["worker-", " | step=1 rank="]);
    let worker = step.split(' ').next().unwrap_or_default();
    if start.drops_root {
        let pid = training_operator_testing::processes::of_pod(run.pid(), &format!("spirals-{worker}"));
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        for line in [
            "Uid:\t65534\t65534\t65534\t65534",
            "CapEff:\t0000000000000000",
            "NoNewPrivs:\t1",
        ] {
            assert!(status.contains(line), "{status}");
        }
    }
    let ended = run.end();
    ended.expect_code(0);
    expect_trained(&ended, "");
    ended.expect_all_succeeded(&REPLICAS, 0);
}

/// The way to start the operator.
#[derive(Debug)]
struct Start {
    /// The command that creates a network namespace with only loopback.
    alone: Option<&'static [&'static str]>,
    /// True if the tests run as root and the operator as an unprivileged user.
    drops_root: bool,
}

const LOOPBACK: &str = "ip link set lo up && exec \"$@\"";
const NOBODY: &[&str] = &[
    "setpriv",
    "--reuid",
    "65534",
    "--regid",
    "65534",
    "--clear-groups",
    "--bounding-set=-all",
    "--no-new-privs",
];

impl Start {
    fn possible_here() -> Self {
        let root = rustix::process::geteuid().is_root();
        let ways: [&[&str]; 2] = [
            &["unshare", "--net"],
            &["unshare", "--user", "--map-root-user", "--net"],
        ];
        let way = if root { ways[0] } else { ways[1] };
        let start = Self {
            alone: Some(way),
            drops_root: root,
        };
        let works = start.command().arg("true").stderr(Stdio::null()).status();
        if works.is_ok_and(|status| status.success()) {
            start
        } else {
            Self {
                alone: None,
                drops_root: root,
            }
        }
    }

    /// Returns the command that precedes the operator's own command line. None of its programs forks.
    fn command(&self) -> Command {
        let mut words = self.alone.unwrap_or_default().to_vec();
        if self.alone.is_some() {
            words.extend(["sh", "-c", LOOPBACK, "sh"]);
        }
        if self.drops_root {
            words.extend(NOBODY);
        }
        words.push("env");
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    }
}

/// The files that the operator reads, readable for its user.
struct World {
    binary: PathBuf,
    /// Contains a `python3` that finds MXNet.
    programs: PathBuf,
    manifest: PathBuf,
    home: PathBuf,
    /// The directory to remove at the end.
    made: Option<PathBuf>,
}

/// Prints the interpreter that an environment was created from, its library, and the environment's packages.
const ASK: &str = "import sys, sysconfig
for path in sys._base_executable, sysconfig.get_path('stdlib'), sysconfig.get_path('platlib'):
    print(path)";

/// Copies an interpreter and its library, without packages and tests.
const COPY: &str = "import glob, os, shutil, sys
executable, stdlib, to = sys.argv[1:]
os.mkdir(to + '/bin')
shutil.copy(executable, to + '/bin')
ignore = shutil.ignore_patterns('site-packages', 'test', 'config-*')
shutil.copytree(stdlib, to + '/lib/' + os.path.basename(stdlib), ignore=ignore)
for library in glob.glob(os.path.dirname(os.path.dirname(executable)) + '/lib/libpython*.so*'):
    shutil.copy(library, to + '/lib')";

impl World {
    fn of(start: &Start, trial: &Trial) -> Self {
        let venv = venv("mxnet");
        let python = venv.join("bin/python");
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_training-operator"));
        if !start.drops_root {
            let home = trial.dir.clone();
            let manifest = examples().join("train.yaml");
            return Self {
                binary,
                programs: venv.join("bin"),
                manifest,
                home,
                made: None,
            };
        }
        // Every user can read it, unlike possibly the project's own folders.
        let home = PathBuf::from(format!("/tmp/local-run-{}", std::process::id()));
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();

        // The interpreter of an environment may be a link into a private home. A copy runs anywhere, and finds the
        // environment's packages by PYTHONPATH.
        let asked = Command::new(&python).args(["-I", "-c", ASK]).output().unwrap();
        let asked = String::from_utf8(asked.stdout).unwrap();
        let [executable, stdlib, packages] = asked.lines().collect::<Vec<_>>()[..] else {
            panic!("{asked}")
        };
        let mut executable = PathBuf::from(executable);
        if !nobody_reads(&executable) {
            let base = home.join("python");
            fs::create_dir(&base).unwrap();
            let copied = Command::new(&python)
                .args(["-I", "-c", COPY])
                .args([&executable, Path::new(stdlib), &base])
                .status();
            assert!(copied.unwrap().success());
            executable = base.join("bin").join(executable.file_name().unwrap());
        }
        let programs = home.join("programs");
        fs::create_dir(&programs).unwrap();
        let script = format!(
            "#!/bin/sh\nPYTHONPATH='{}' LD_LIBRARY_PATH='{}' exec '{}' \"$@\"\n",
            readable(Path::new(packages), &home).display(),
            home.join("python/lib").display(),
            executable.display(),
        );
        fs::write(programs.join("python3"), script).unwrap();
        fs::set_permissions(programs.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
        let manifest = readable(&examples(), &home).join("train.yaml");
        Self {
            binary: readable(&binary, &home),
            programs,
            manifest,
            made: Some(home.clone()),
            home,
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            let _ = fs::remove_dir_all(made);
        }
    }
}

fn nobody_reads(path: &Path) -> bool {
    let test = Command::new(NOBODY[0])
        .args(&NOBODY[1..])
        .args(["test", "-r"])
        .arg(path)
        .status();
    test.unwrap().success()
}

/// Returns the path, or the path of a copy if the unprivileged user cannot read it.
fn readable(path: &Path, home: &Path) -> PathBuf {
    if nobody_reads(path) {
        return path.to_owned();
    }
    let copy = Command::new("cp").arg("-r").args([path, home]).status();
    assert!(copy.unwrap().success());
    home.join(path.file_name().unwrap())
}
