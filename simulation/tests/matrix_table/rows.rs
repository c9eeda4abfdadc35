//! The rows: what goes wrong.

/// A row of the matrix.
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) fault: &'static str,
}

const fn row(id: &'static str, fault: &'static str) -> Row {
    Row { id, fault }
}

/// The sections, with their rows.
pub(crate) const SECTIONS: &[(&str, &[Row])] = &[
    ("The operator's process", A),
    ("Answers of the API server, at each call", B),
    ("Lists and watches", C),
    ("The control plane", D),
    ("Pods and nodes", E),
    ("Whose an object is", F),
    ("A job's life", G),
    ("Admission and quota", H),
    ("Sizes", I),
    ("What users write", J),
    ("Several operators, several times", K),
];

const A: &[Row] = &[
    row("A1", "it dies after a write, whichever"),
    row("A2", "it dies before a write, or about a read"),
    row("A3", "it dies several times"),
    row("A4", "it dies before its first lists are complete"),
    row("A5", "it is asked to end in the middle of its work"),
    row("A6", "it stands still for minutes, and goes on with what it knew"),
    row(
        "A7",
        "the kernel ends it for want of memory, with ten thousand jobs",
    ),
    row("A8", "the code of one job panics"),
];

const B: &[Row] = &[
    row("B1", "409: the job changed while its status was on its way"),
    row("B2", "409: what is to be made is there, and the operator's own"),
    row("B3", "409: what is to be made is there, and somebody else's"),
    row(
        "B4",
        "409: what is to be made is there, and the predecessor's, which is going",
    ),
    row("B5", "429, with a wait that makes sense or does not"),
    row("B6", "500, 502, 503, 504"),
    row(
        "B7",
        "a write takes effect, at once or later, and its answer is lost",
    ),
    row("B8", "a write never arrives"),
    row("B9", "no byte comes back"),
    row(
        "B10",
        "an answer that is cut short, no JSON, or about something else",
    ),
    row("B11", "401: the token is not taken any more"),
    row("B12", "403: a right is taken away, and given back"),
    row("B13", "404: what is to be written or deleted is gone"),
    row("B14", "404: the kind is not served for a while"),
    row("B15", "413: an object is too large"),
    row("B16", "422: an object is invalid"),
    row("B17", "answers come late, or with warnings"),
];

const C: &[Row] = &[
    row("C1", "watches end every few seconds"),
    row("C2", "410, as an event or as an answer, once or again and again"),
    row("C3", "what is told of one kind comes later than of others"),
    row("C4", "lists show an older state"),
    row("C5", "what happened in between is never seen"),
    row(
        "C6",
        "events come twice or in another order, or only bookmarks do",
    ),
    row(
        "C7",
        "things change while a long list is read, or its next page is gone",
    ),
    row("C8", "one watch is silent for good, others are not"),
    row("C9", "pods change a thousand times a second"),
    row("C10", "an object cannot be read"),
    row(
        "C11",
        "under load, watches end as soon as they have told something",
    ),
];

const D: &[Row] = &[
    row("D1", "the API server is started anew"),
    row("D2", "the API server is away for an hour"),
    row("D3", "etcd has no leader"),
    row("D4", "the history is forgotten while nobody watches"),
    row("D5", "etcd is restored from a backup"),
    row("D6", "etcd has no space left"),
    row("D7", "an admission webhook is down"),
    row("D8", "the API server turns most calls away"),
    row("D9", "what is stored is not valid under a new definition"),
];

const E: &[Row] = &[
    row("E1", "a pod is deleted, in each phase"),
    row("E2", "a pod is evicted or preempted"),
    row("E3", "a node is lost, and its pod does not go"),
    row("E4", "phases come in another order, containers are restarted"),
    row("E5", "each exit code; several containers; no word of any"),
    row("E6", "a pod never starts"),
    row("E7", "all pods end in one instant"),
    row("E8", "the scheduler ends well as a worker fails"),
    row("E9", "finished pods are removed while the operator is down"),
    row(
        "E10",
        "a replica fails again and again, and the operator is restarted in between",
    ),
    row("E11", "a webhook changes pods as they are made"),
    row("E12", "labels of pods and services are edited"),
    row("E13", "the service or the ConfigMap of a compact job is deleted"),
];

const F: &[Row] = &[
    row("F1", "a job is deleted and made again at once"),
    row("F2", "news of the old job come after the new one"),
    row("F3", "the owner is taken off a pod"),
    row("F4", "a pod with a job's labels is somebody else's"),
    row("F5", "jobs of two kinds have one name"),
    row("F6", "a pod has two owners, or one that does not control it"),
    row("F7", "an owner is claimed from another namespace"),
    row("F8", "the API server checks who may keep an owner from going"),
];

const G: &[Row] = &[
    row("G1", "a job is deleted at each call of its making"),
    row(
        "G2",
        "a job is deleted in the foreground, in the background, or without its pods",
    ),
    row("G3", "the spec is edited at each step"),
    row("G4", "a job is suspended and resumed quickly, or after its end"),
    row("G5", "somebody edits the status"),
    row("G6", "a finalizer keeps a job that is deleted"),
    row("G7", "the namespace is going"),
    row(
        "G8",
        "deadlines and times to live pass while operators come and go",
    ),
    row("G9", "a time to live is over as somebody makes the job again"),
    row("G10", "each clean-up policy at each end"),
    row("G11", "the Go operator takes over, and this one again"),
];

const H: &[Row] = &[
    row("H1", "a quota lets in some of many pods"),
    row("H2", "a policy denies pods"),
    row("H3", "a webhook denies pods, with any code"),
    row("H4", "a quota lets in some services"),
    row("H5", "what a pod names is missing"),
];

const I: &[Row] = &[
    row("I-1", "a job of very many replicas"),
    row("I-2", "ten thousand jobs"),
    row("I-3", "replicas of 0, below it, and beyond all bounds"),
    row("I-4", "one namespace has hundreds of jobs, another one"),
    row("I-5", "jobs come and go for a day"),
];

const J: &[Row] = &[
    row("J1", "jobs that make no sense"),
    row("J2", "names that are too long, or no names of hosts"),
    row("J3", "huge and deep templates"),
    row("J4", "any character, and what looks like a variable, in texts"),
    row("J5", "users set the operator's variables"),
    row(
        "J6",
        "a pod's last words are long, and full of control characters",
    ),
];

const K: &[Row] = &[
    row("K-1", "two operators work at once"),
    row(
        "K-2",
        "the lease cannot be had, renewed in time, or its holder dies",
    ),
    row("K-3", "clocks are apart, or jump"),
    row("K-4", "an operator is replaced while it works"),
];
