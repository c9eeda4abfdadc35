//! The list of a history, for which each file is read once.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::directory::{Entry, entries, is_in, read_story};
use super::summary::Summary;

/// The finished jobs of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The jobs, those that ended last first.
    pub jobs: Vec<Summary>,
    /// The size of the stories, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// The problems of files that are not stories.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// The summaries of files that were read. A story is written once, so its file is read again only if its size or its time
/// differs.
#[derive(Debug, Default)]
pub struct Catalog(BTreeMap<String, (Entry, Result<Summary, String>)>);

impl Catalog {
    /// Lists the stories in a directory: those of a namespace, or all.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn list(&mut self, path: &Path, namespace: Option<&str>) -> io::Result<Listed> {
        let mut known = std::mem::take(&mut self.0);
        let mut listed = Listed::default();
        for entry in entries(path)? {
            if !is_in(&entry, namespace) {
                continue;
            }
            let summary = match known.remove(&entry.file) {
                Some((same, summary)) if same == entry => summary,
                _ => match read_story(&path.join(&entry.file)) {
                    // It was removed meanwhile.
                    Ok(None) => continue,
                    Ok(Some(story)) => Ok(Summary::of(&story)),
                    Err(problem) => Err(problem),
                },
            };
            match &summary {
                Ok(job) if namespace.is_none_or(|namespace| job.namespace == namespace) => {
                    listed.jobs.push(job.clone());
                    listed.bytes += entry.bytes;
                }
                Ok(_) => {}
                Err(problem) => listed.problems.push(format!("{}: {problem}", entry.file)),
            }
            self.0.insert(entry.file.clone(), (entry, summary));
        }
        listed.jobs.sort_by_key(|job| std::cmp::Reverse(job.finished_at));
        Ok(listed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    use serde_json::json;

    use super::*;

    const TIME: &str = "2026-01-01T00:00:00Z";

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("catalog-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, namespace: &str, name: &str, text: &str) {
            let path = self.path(namespace, name);
            fs::write(&path, text).unwrap();
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
                .unwrap();
        }

        fn path(&self, namespace: &str, name: &str) -> PathBuf {
            self.0
                .join(format!("{namespace}.{name}.MXJob.uid-of-{name}.json"))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn story(namespace: &str, name: &str) -> String {
        let story = json!({
            "version": 1, "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "namespace": namespace, "name": name,
            "uid": format!("uid-of-{name}"), "state": "Succeeded", "observedAt": TIME, "createdAt": TIME,
        });
        story.to_string()
    }

    fn names(listed: &Listed) -> Vec<&str> {
        let mut names: Vec<_> = listed.jobs.iter().map(|job| job.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_story_is_read_once_and_forgotten_with_its_file() {
        let folder = Folder::new("once");
        folder.write("ml", "a", &story("ml", "a"));
        folder.write("ml", "b", &story("ml", "b"));
        let mut catalog = Catalog::default();
        let first = catalog.list(&folder.0, None).unwrap();
        assert_eq!(names(&first), ["a", "b"]);
        assert_eq!(first.bytes, u64::try_from(2 * story("ml", "a").len()).unwrap());
        // Not a story, but of the same size and time.
        folder.write("ml", "a", &" ".repeat(story("ml", "a").len()));
        assert_eq!(catalog.list(&folder.0, None).unwrap(), first);
        fs::remove_file(folder.path("ml", "b")).unwrap();
        folder.write("ml", "c", &story("ml", "c"));
        assert_eq!(names(&catalog.list(&folder.0, None).unwrap()), ["a", "c"]);
        assert_eq!(catalog.0.len(), 2);
        folder.write("ml", "a", "{}");
        let changed = catalog.list(&folder.0, None).unwrap();
        assert_eq!(names(&changed), ["c"]);
        assert!(
            changed.problems[0].starts_with("ml.a.MXJob.uid-of-a.json: not a story"),
            "{changed:?}"
        );
    }

    #[test]
    fn the_stories_of_other_namespaces_are_not_read() {
        let folder = Folder::new("namespaces");
        folder.write("ml", "a", &story("ml", "a"));
        folder.write("other", "b", "not read");
        folder.write("ml.x", "c", &story("ml.x", "c"));
        let listed = Catalog::default().list(&folder.0, Some("ml")).unwrap();
        assert_eq!(names(&listed), ["a"]);
        assert_eq!(listed.problems, Vec::<String>::new());
    }
}
