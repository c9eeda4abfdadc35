use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube_memory::{Cluster, Storage};
use serde_json::json;

use super::*;

/// The variables that make a test the writer of [`nothing_that_was_answered_is_lost_by_sigkill`].
const WRITER: [&str; 2] = ["DATA_TEST_DIRECTORY", "DATA_TEST_FIRST"];

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("data-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn open(folder: &Path) -> Result<Objects, DataError> {
    DataDirectory::open(folder)?.objects()
}

fn entry(key: &str, value: &str) -> (String, Option<Vec<u8>>) {
    (key.to_owned(), Some(value.as_bytes().to_vec()))
}

fn persisted(folder: &Path) -> Cluster {
    let cluster = Cluster::new();
    assert_eq!(cluster.persist(open(folder).unwrap()).unwrap(), 0);
    cluster
}

/// The name that a write of this number changes, and its new value. `None` is a deletion.
fn write(number: u64) -> (String, Option<String>) {
    let value = (number % 5 != 4).then(|| number.to_string());
    (format!("map-{}", number % 7), value)
}

async fn write_without_end(folder: &Path, first: u64) {
    let maps: Api<ConfigMap> = Api::default_namespaced(persisted(folder).client("default"));
    for number in first.. {
        match write(number) {
            (name, Some(value)) => {
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": value}});
                let params = PatchParams::apply("writer").force();
                maps.patch(&name, &params, &Patch::Apply(&map)).await.unwrap();
            }
            (name, None) => drop(maps.delete(&name, &DeleteParams::default()).await),
        }
        let mut output = std::io::stdout();
        writeln!(output, "answered {number}").unwrap();
        output.flush().unwrap();
    }
}

#[tokio::test]
async fn nothing_that_was_answered_is_lost_by_sigkill() {
    if let [Ok(folder), Ok(first)] = WRITER.map(std::env::var) {
        return write_without_end(Path::new(&folder), first.parse().unwrap()).await;
    }
    let folder = folder("kill");
    let mut states: Vec<BTreeMap<String, String>> = vec![BTreeMap::new()];
    let mut next: u64 = 0;
    let mut random: u64 = 1;
    for _ in 0..100 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(7);
        let wanted = random >> 59;
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--nocapture",
                "data::tests::nothing_that_was_answered_is_lost_by_sigkill",
            ])
            .envs(
                WRITER
                    .into_iter()
                    .zip([folder.display().to_string(), next.to_string()]),
            )
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut answered = 0;
        for line in lines
            .map(Result::unwrap)
            .filter(|line| line.starts_with("answered "))
        {
            assert_eq!(line, format!("answered {}", next + answered));
            answered += 1;
            if answered == wanted + 1 {
                writer.kill().unwrap();
            }
        }
        writer.wait().unwrap();
        assert!(
            answered > wanted,
            "the writer ended by itself after {answered} writes"
        );
        // The write after the last answered one may be stored as well.
        for number in states.len() as u64..=next + answered + 1 {
            let mut state = states.last().unwrap().clone();
            match write(number - 1) {
                (name, Some(value)) => state.insert(name, value),
                (name, None) => state.remove(&name),
            };
            states.push(state);
        }
        let found: BTreeMap<_, _> = persisted(&folder)
            .list("configmaps", None)
            .iter()
            .map(|map| {
                (
                    map["metadata"]["name"].as_str().unwrap().to_owned(),
                    map["data"]["n"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        next += answered;
        if found != states[next as usize] {
            assert_eq!(found, states[next as usize + 1]);
            next += 1;
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn changes_are_refused_while_the_disk_is_full() {
    let folder = folder("full");
    let mut objects = open(&folder).unwrap();
    objects.commit(&[entry("a", "1")]).unwrap();
    let limit = |objects: &Objects, pages: u32| {
        objects
            .connection()
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .unwrap();
    };
    limit(&objects, 1);
    let large = "x".repeat(100_000);
    for _ in 0..2 {
        let error = objects
            .commit(&[entry("a", "2"), entry("b", &large)])
            .unwrap_err();
        assert!(
            error.to_string().contains("No space left on device; free"),
            "{error}"
        );
    }
    limit(&objects, 1_000);
    objects.commit(&[entry("c", &large)]).unwrap();
    drop(objects);
    let mut again = open(&folder).unwrap().load().unwrap();
    again.sort();
    let expected = [
        ("a".to_owned(), b"1".to_vec()),
        ("c".to_owned(), large.into_bytes()),
    ];
    assert_eq!(again, expected);
    fs::remove_dir_all(folder).unwrap();
}

/// Copies the files of a directory that is in use, as a process that is killed leaves them.
fn killed_copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    DirBuilder::new().mode(0o700).create(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[test]
fn a_damaged_file_is_named_and_not_changed() {
    let (folder, copy) = (folder("damaged"), folder("damaged-copy"));
    let mut objects = open(&folder).unwrap();
    for number in 0..20 {
        objects
            .commit(&[entry(&format!("key-{number}"), &"v".repeat(1_000))])
            .unwrap();
    }
    killed_copy(&folder, &copy);
    assert_eq!(
        open(&copy).unwrap().load().unwrap().len(),
        20,
        "the copy is usable"
    );
    let path = copy.join("objects.sqlite");
    let check = |at: usize| {
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        let error = open(&copy)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(error.contains("objects.sqlite: damaged: "), "{at}: {error}");
        assert!(
            error.contains("nothing was changed: restore the directory"),
            "{error}"
        );
        assert_eq!(fs::read(&path).unwrap(), bytes);
    };
    drop(objects);
    let text = fs::read(folder.join("objects.sqlite")).unwrap();
    let value = text.windows(4).rposition(|bytes| bytes == b"vvvv").unwrap();
    for at in [3, value, 4096 + 5] {
        killed_copy(&folder, &copy);
        check(at);
    }
    fs::remove_dir_all(folder).unwrap();
    fs::remove_dir_all(copy).unwrap();
}

#[tokio::test]
async fn a_directory_is_for_one_cluster_of_this_format_and_this_user() {
    let folder = folder("directory");
    let first = open(&folder).unwrap();
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    for file in ["cluster.lock", "objects.sqlite", "objects.sqlite-wal"] {
        assert_eq!(
            fs::metadata(folder.join(file)).unwrap().mode() & 0o777,
            0o600,
            "{file}"
        );
    }
    let message = |folder: &Path| open(folder).err().unwrap().to_string();
    assert!(message(&folder).contains("another local cluster uses it"));
    first.connection().pragma_update(None, "user_version", 2).unwrap();
    drop(first);
    let newer = message(&folder);
    assert!(
        newer.contains("format 2, must be at most 1); use that version"),
        "{newer}"
    );
    fs::set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
    assert!(message(&folder).contains("(has mode 750); run: chmod 700"));
    let foreign = folder.join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("notes"), "").unwrap();
    assert!(message(&foreign).contains("not made by a local cluster"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn deleted_objects_leave_no_room_behind() {
    let folder = folder("room");
    let mut objects = open(&folder).unwrap();
    let keys: Vec<String> = (0..50).map(|number| format!("key-{number}")).collect();
    for key in &keys {
        objects.commit(&[entry(key, &"x".repeat(20_000))]).unwrap();
    }
    let removed: Vec<_> = keys.into_iter().map(|key| (key, None)).collect();
    objects.commit(&removed).unwrap();
    drop(objects);
    drop(open(&folder).unwrap());
    let bytes = fs::metadata(folder.join("objects.sqlite")).unwrap().len();
    assert!(bytes < 200_000, "{bytes}");
    fs::remove_dir_all(folder).unwrap();
}
