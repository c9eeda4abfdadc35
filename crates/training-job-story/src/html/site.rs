//! The page of a story on a server: with links, and a script that renews it.

use maud::{Markup, html};

use crate::story::Story;

/// The parts of a page that a server adds.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Address of the stylesheet, which contains [`STYLE`](crate::STYLE).
    pub style: &'a str,
    /// Address of the script.
    pub script: &'a str,
    /// Address of the server-sent events; the script loads the page again after each event. Empty if the story does not
    /// change.
    pub events: &'a str,
    /// Address of the list of jobs.
    pub list: &'a str,
    /// Address of the logs, to which the name of a pod is appended. Empty if there are none.
    pub logs: &'a str,
    /// Sentences about what the page lacks.
    pub notes: &'a [String],
}

impl Site<'_> {
    pub(super) fn head(&self) -> Markup {
        html! {
            link rel="icon" href="data:,";
            link rel="stylesheet" href=(self.style);
            script src=(self.script) defer {}
        }
    }

    pub(super) fn back(&self) -> Markup {
        html! { p.back { a href=(self.list) { "All jobs" } } }
    }

    pub(super) fn notes(&self) -> Markup {
        html! { @for note in self.notes { p.note { (note) } } }
    }

    /// Returns links to the logs of the pods that were observed.
    pub(super) fn logs(&self, story: &Story) -> Markup {
        let pods = story.replicas.iter().flat_map(|replica| &replica.pods);
        let pods: Vec<_> = pods.filter(|pod| !pod.is_inferred).collect();
        html! {
            @if !pods.is_empty() && !self.logs.is_empty() {
                section aria-labelledby="follow" {
                    h2 #follow { "Follow a log" }
                    ul.logs { @for pod in pods { li { a href={ (self.logs) (pod.name) } { (pod.name) } } } }
                }
            }
        }
    }
}
