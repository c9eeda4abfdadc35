//! `snapshots/` contains the objects of every example and every case, for reviewers. The crates of the frameworks
//! compare them. These tests check that there are no other files.

use std::fs;
use std::path::Path;

use training_job_testbed::cluster::repository as root;

#[test]
fn every_snapshot_is_compared_by_a_framework() {
    let mut tests = String::new();
    for framework in fs::read_dir(root().join("frameworks")).unwrap() {
        let test = framework.unwrap().path().join("tests/kind/snapshots.rs");
        tests += &fs::read_to_string(test).unwrap();
    }
    // `check_jobs` gets a folder below `snapshots/`.
    let is_compared = |directory: &Path| {
        let folder = directory.strip_prefix("snapshots").unwrap().display();
        tests.contains(&format!("\"{}\"", directory.display())) || tests.contains(&format!(", \"{folder}\""))
    };
    visit(Path::new("snapshots"), &is_compared);
}

fn visit(directory: &Path, is_compared: &impl Fn(&Path) -> bool) {
    for entry in fs::read_dir(root().join(directory)).unwrap() {
        let path = directory.join(entry.unwrap().file_name());
        if is_compared(directory) {
            assert!(
                path.extension().is_some_and(|e| e == "snap"),
                "{} is no snapshot",
                path.display()
            );
        } else {
            assert!(
                root().join(&path).is_dir(),
                "{} belongs to no job",
                path.display()
            );
            visit(&path, is_compared);
        }
    }
}
