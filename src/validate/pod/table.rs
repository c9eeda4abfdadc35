//! The rules of a pod's fields.

use kube_schema::names;

use super::Rule;
use super::Test::{By, Doubtful, Most, Not, Number, One, Rules, Set, Text, Unique, Unset, Word};
use super::{checks, resources, systems};

pub(super) const TEMPLATE: &[Rule] = &[
    Rule("metadata.annotations", By(checks::annotations)),
    Rule("metadata.finalizers[]", Text(checks::is_finalizer,
        "must be a valid finalizer", "use a key with a DNS name and '/', such as example.com/cleanup")),
    Rule("spec", Rules(POD)),
];

const KEY: super::Test = Text(
    |key| names::qualified(key).is_empty(),
    "must be a valid key",
    "use at most 63 letters, digits, '-', '_' and '.', optionally after a DNS name and '/'",
);
const LABEL_VALUE: super::Test = Text(
    |value| names::label_value(value).is_none(),
    "must be a valid label value",
    "use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
);
const LABEL: super::Test = Text(
    |name| names::label_1123(name).is_none(),
    "must be a DNS label",
    "use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends",
);
const DNS_NAME: super::Test = Text(
    |name| names::subdomain(name).is_none(),
    "must be a DNS name",
    "use at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
);
const ID: super::Test = Number(0, MAX_INT32);
const MODE: super::Test = By(checks::mode);
const LOCAL_PATH: super::Test = Text(
    |path| checks::is_descending(path) && !path.starts_with(".."),
    "must be a relative path without \"..\"",
    "remove the leading '/' or the \"..\"",
);
const MAX_INT32: i64 = i32::MAX as i64;
const MAX_INT64: i64 = i64::MAX;
const PULL_POLICIES: super::Test = Word(&["Always", "IfNotPresent", "Never"]);
const PROFILES: super::Test = Word(&["RuntimeDefault", "Localhost", "Unconfined"]);

const POD: &[Rule] = &[
    Rule("activeDeadlineSeconds", Number(1, MAX_INT32)),
    Rule("affinity.nodeAffinity", Rules(NODE_AFFINITY)),
    Rule("affinity.podAffinity|podAntiAffinity", Rules(POD_AFFINITY)),
    Rule("containers|initContainers[]", Rules(CONTAINER)),
    Rule("containers[]", Rules(REGULAR_CONTAINER)),
    Rule("initContainers[]", By(checks::init_container)),
    Rule("dnsPolicy", Word(&["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"])),
    Rule("dnsConfig", Rules(DNS)),
    Rule("", By(checks::dns_servers)),
    Rule("ephemeralContainers", Unset("must not be set in a template", "move them to initContainers or containers")),
    Rule("hostAliases[].ip", Text(checks::is_ip, "must be an IP address", "use an address such as 10.0.0.1")),
    Rule("hostAliases[].hostnames[]", DNS_NAME),
    Rule("hostname|subdomain", LABEL),
    Rule("hostnameOverride", DNS_NAME),
    Rule("", By(checks::host_ports)),
    Rule("nodeName|priorityClassName|serviceAccountName|serviceAccount", DNS_NAME),
    Rule("runtimeClassName", Text(|name| names::subdomain(name).is_none(), "must be a DNS name", "name a RuntimeClass")),
    Rule("nodeSelector", By(checks::labels)),
    Rule("os.name", Set("use linux or windows")),
    Rule("os.name", Word(&["linux", "windows"])),
    Rule("", By(systems::check)),
    Rule("overhead", By(resources::check_amounts)),
    Rule("preemptionPolicy", Word(&["PreemptLowerPriority", "Never"])),
    Rule("", Rules(PRIORITY)),
    Rule("readinessGates[].conditionType", KEY),
    Rule("resourceClaims", Unique("name")),
    Rule("resourceClaims[].name", LABEL),
    Rule("resourceClaims[]", One(&["resourceClaimName", "resourceClaimTemplateName"])),
    Rule("resourceClaims[].resourceClaimName|resourceClaimTemplateName", DNS_NAME),
    Rule("", By(checks::claims)),
    Rule("resources", By(resources::check_pod)),
    Rule("schedulingGates", Unique("name")),
    Rule("schedulingGates[].name", Set("name the gate, or remove it")),
    Rule("schedulingGates[].name", KEY),
    Rule("", By(checks::sleeps)),
    Rule("", By(checks::sysctls)),
    Rule("securityContext", Rules(POD_SECURITY)),
    Rule("securityContext", Rules(PROFILE_FIELDS)),
    Rule("", Rules(NAMESPACES)),
    Rule("terminationGracePeriodSeconds", Doubtful(|seconds| seconds.as_i64() < Some(0),
        "must be at least 0, because API servers change it to 1", "set the seconds that the pod may take to end")),
    Rule("tolerations[]", Rules(TOLERATION)),
    Rule("topologySpreadConstraints[]", Rules(SPREAD)),
    Rule("topologySpreadConstraints", By(checks::spread_twice)),
    Rule("volumes", Unique("name")),
    Rule("volumes[]", Rules(VOLUME)),
    Rule("", By(checks::devices)),
];

/// Rules of fields that depend on each other.
const NAMESPACES: &[Rule] = &[
    Rule("", Not(|pod| pod["hostPID"] == true && pod["shareProcessNamespace"] == true,
        "must not have both hostPID and shareProcessNamespace", "remove one of them")),
    Rule("", Not(|pod| pod["os"]["name"] == "windows" && (pod["hostPID"] == true || pod["hostIPC"] == true),
        "must not have hostPID or hostIPC for os.name windows", "remove them")),
    Rule("", Not(|pod| pod["hostUsers"] == false && (pod["hostPID"] == true || pod["hostIPC"] == true),
        "must not have hostPID or hostIPC with hostUsers: false", "remove them, or remove hostUsers")),
    Rule("", Not(|pod| !pod["nodeName"].as_str().unwrap_or_default().is_empty() && checks::has_items(&pod["schedulingGates"]),
        "must not have both nodeName and schedulingGates", "remove one of them")),
];

/// The API server fills these in from the priority class, and refuses other values.
const PRIORITY: &[Rule] = &[
    Rule("", Doubtful(|pod| pod["priority"].as_i64().unwrap_or(0) != 0 && pod["priorityClassName"].is_null(),
        "priority is refused by the API server without its class", "set priorityClassName instead")),
    Rule("", Doubtful(|pod| pod["preemptionPolicy"] == "Never" && pod["priorityClassName"].is_null(),
        "preemptionPolicy Never is refused by the API server without a class that has it", "set priorityClassName instead")),
    Rule("", Doubtful(|pod| !pod["overhead"].is_null() && pod["runtimeClassName"].is_null(),
        "overhead is refused by the API server without its class", "set runtimeClassName instead")),
];

const NODE_AFFINITY: &[Rule] = &[
    Rule("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", Set("add a term, or remove the affinity")),
    Rule("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]", Rules(NODE_TERM)),
    Rule("preferredDuringSchedulingIgnoredDuringExecution[].weight", Number(1, 100)),
    Rule("preferredDuringSchedulingIgnoredDuringExecution[].preference", Rules(NODE_TERM)),
];

const NODE_TERM: &[Rule] = &[
    Rule("matchExpressions[]", Rules(REQUIREMENT)),
    Rule("matchExpressions[].operator", Word(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])),
    Rule("matchFields[].operator", Word(&["In", "NotIn"])),
    Rule("matchFields[].operator", Set("use In or NotIn")),
    Rule("matchFields[].key", Word(&["metadata.name"])),
    Rule("matchFields[].values", Not(|v| v.as_array().is_none_or(|v| v.len() != 1),
        "must have one value", "use a term for each node")),
];

const POD_AFFINITY: &[Rule] = &[
    Rule("requiredDuringSchedulingIgnoredDuringExecution[]", Rules(POD_TERM)),
    Rule("preferredDuringSchedulingIgnoredDuringExecution[].weight", Number(1, 100)),
    Rule("preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm", Rules(POD_TERM)),
];

const POD_TERM: &[Rule] = &[
    Rule("topologyKey", Set("name a label of nodes, such as kubernetes.io/hostname")),
    Rule("topologyKey", KEY),
    Rule("namespaces[]", LABEL),
    Rule("labelSelector|namespaceSelector", Rules(SELECTOR)),
    Rule("", By(checks::label_keys)),
];

const SELECTOR: &[Rule] = &[
    Rule("matchLabels", By(checks::labels)),
    Rule("matchExpressions[]", Rules(REQUIREMENT)),
    Rule("matchExpressions[].operator", Word(&["In", "NotIn", "Exists", "DoesNotExist"])),
    Rule("matchExpressions[].values[]", LABEL_VALUE),
];

const REQUIREMENT: &[Rule] = &[
    Rule("key", Set("name the label")),
    Rule("key", KEY),
    Rule("operator", Set("use In, NotIn, Exists or DoesNotExist")),
    Rule("", By(checks::requirement)),
];

const TOLERATION: &[Rule] = &[
    Rule("key", KEY),
    Rule("operator", Word(&["Equal", "Exists", "Lt", "Gt"])),
    Rule("effect", Word(&["NoSchedule", "PreferNoSchedule", "NoExecute"])),
    Rule("", By(checks::toleration)),
];

const SPREAD: &[Rule] = &[
    Rule("maxSkew", Number(1, MAX_INT32)),
    Rule("minDomains", Number(1, MAX_INT32)),
    Rule("topologyKey", Set("name a label of nodes, such as topology.kubernetes.io/zone")),
    Rule("whenUnsatisfiable", Set("use DoNotSchedule or ScheduleAnyway")),
    Rule("whenUnsatisfiable", Word(&["DoNotSchedule", "ScheduleAnyway"])),
    Rule("", Not(|spread| !spread["minDomains"].is_null() && spread["whenUnsatisfiable"] != "DoNotSchedule",
        "must have whenUnsatisfiable: DoNotSchedule for minDomains", "set it, or remove minDomains")),
    Rule("nodeAffinityPolicy|nodeTaintsPolicy", Word(&["Honor", "Ignore"])),
    Rule("labelSelector", Rules(SELECTOR)),
    Rule("", By(checks::label_keys)),
];

const DNS: &[Rule] = &[
    Rule("nameservers", Most(3)),
    Rule("nameservers[]", Text(checks::is_ip, "must be an IP address", "use an address such as 10.0.0.10")),
    Rule("searches", Most(32)),
    Rule("searches", Not(|searches| checks::joined_len(searches) > 2_048,
        "must be at most 2048 characters in total", "remove some of them")),
    Rule("searches[]", Text(checks::is_search, "must be a DNS name", "use lower-case letters, digits, '-' and '.'")),
    Rule("options[].name", Set("name the option")),
];

const POD_SECURITY: &[Rule] = &[
    Rule("runAsUser|runAsGroup|fsGroup", ID),
    Rule("supplementalGroups[]", ID),
    Rule("fsGroupChangePolicy", Word(&["OnRootMismatch", "Always"])),
    Rule("supplementalGroupsPolicy", Word(&["Merge", "Strict"])),
    Rule("seLinuxChangePolicy", Word(&["Recursive", "MountOption"])),
    Rule("sysctls", Unique("name")),
    Rule("sysctls[].name", Set("name the kernel parameter")),
    Rule("sysctls[].name", Text(checks::is_sysctl, "must be a kernel parameter", "use a name such as net.core.somaxconn")),
];

const PROFILE_FIELDS: &[Rule] = &[
    Rule("seccompProfile|appArmorProfile.type", Set("use RuntimeDefault, Localhost or Unconfined")),
    Rule("seccompProfile|appArmorProfile.type", PROFILES),
    Rule("seccompProfile|appArmorProfile", Not(
        |profile| profile["type"] == "Localhost" && profile["localhostProfile"].as_str().is_none_or(|p| p.trim() != p || p.is_empty()),
        "must have localhostProfile for type Localhost", "name the profile without blanks around it")),
    Rule("seccompProfile|appArmorProfile", Not(|profile| profile["type"] != "Localhost" && !profile["localhostProfile"].is_null(),
        "must have localhostProfile only for type Localhost", "remove it, or set type: Localhost")),
    Rule("seccompProfile.localhostProfile", Text(checks::is_descending,
        "must be a relative path without \"..\"", "name a file below the kubelet's folder of profiles")),
];

const CONTAINER: &[Rule] = &[
    Rule("image", Not(|image| image.as_str().is_some_and(|image| image.trim() != image && !image.trim().is_empty()),
        "must have no blanks around it", "remove them")),
    Rule("imagePullPolicy", PULL_POLICIES),
    Rule("terminationMessagePolicy", Word(&["File", "FallbackToLogsOnError"])),
    Rule("restartPolicy", Word(&["Always", "OnFailure", "Never"])),
    Rule("ports[].hostPort", Number(0, 65_535)),
    Rule("ports[].protocol", Word(&["TCP", "UDP", "SCTP"])),
    Rule("env[]", Rules(VARIABLE)),
    Rule("envFrom[]", One(&["configMapRef", "secretRef"])),
    Rule("envFrom[].configMapRef|secretRef.name", Set("name the object")),
    Rule("envFrom[].configMapRef|secretRef.name", DNS_NAME),
    Rule("envFrom[].prefix", Text(|prefix| names::env_name(prefix).is_none(),
        "must be a valid prefix of names", "use printable ASCII characters other than '='")),
    Rule("volumeMounts", Unique("mountPath")),
    Rule("volumeMounts[]", Rules(MOUNT)),
    Rule("", By(checks::propagation)),
    Rule("volumeDevices", Unique("name")),
    Rule("volumeDevices", Unique("devicePath")),
    Rule("volumeDevices[].devicePath", Set("set the path of the device in the container")),
    Rule("resources", By(resources::check)),
    Rule("resizePolicy[].resourceName", Word(&["cpu", "memory"])),
    Rule("resizePolicy[].restartPolicy", Word(&["NotRequired", "RestartContainer"])),
    Rule("resizePolicy", Unique("resourceName")),
    Rule("securityContext", Rules(CONTAINER_SECURITY)),
    Rule("securityContext", Rules(PROFILE_FIELDS)),
    Rule("livenessProbe|readinessProbe|startupProbe", Rules(PROBE)),
    Rule("livenessProbe|startupProbe.successThreshold", Not(|number| number.as_i64().is_some_and(|number| number > 1),
        "must be 1", "remove it, or set it in a readinessProbe")),
    Rule("readinessProbe.terminationGracePeriodSeconds", Unset("must not be set in a readinessProbe", "remove it")),
    Rule("lifecycle.postStart|preStop", One(&["exec", "httpGet", "sleep", "tcpSocket"])),
    Rule("lifecycle.postStart|preStop", Rules(HANDLER)),
];

const REGULAR_CONTAINER: &[Rule] = &[
    Rule("restartPolicy", Doubtful(|policy| policy.is_string(),
        "must be in an initContainer before Kubernetes 1.35", "remove it, unless the cluster is newer")),
];

const FIELDS_OF_VARIABLES: &[&str] = &[
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.host", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
];

const VARIABLE: &[Rule] = &[
    Rule("valueFrom", One(&["configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"])),
    Rule("", Not(|variable| !variable["valueFrom"].is_null() && variable["value"].as_str().is_some_and(|text| !text.is_empty()),
        "must not have both value and valueFrom", "remove one of them")),
    Rule("valueFrom.configMapKeyRef|secretKeyRef.name", Set("name the object")),
    Rule("valueFrom.configMapKeyRef|secretKeyRef.name", DNS_NAME),
    Rule("valueFrom.configMapKeyRef|secretKeyRef.key", Set("name the key in the object")),
    Rule("valueFrom.configMapKeyRef|secretKeyRef.key", Text(checks::is_data_key,
        "must be a valid key of a ConfigMap or Secret", "use letters, digits, '-', '_' and '.'")),
    Rule("valueFrom.fieldRef.fieldPath", Not(|path| !checks::is_field(path, FIELDS_OF_VARIABLES),
        "must be a field that a variable may have",
        "use metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'], metadata.annotations['KEY'], \
         spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP or status.podIPs")),
    Rule("valueFrom.resourceFieldRef", Rules(RESOURCE_FIELD)),
];

const RESOURCE_FIELD: &[Rule] = &[
    Rule("resource", Text(resources::is_resource_field,
        "must be a resource of a container", "use limits or requests with .cpu, .memory or .ephemeral-storage")),
    Rule("", By(resources::check_divisor)),
];

const MOUNT: &[Rule] = &[
    Rule("name", Set("name a volume of the pod")),
    Rule("mountPath", Set("set the path in the container")),
    Rule("mountPath", Doubtful(|path| path.as_str().is_some_and(|path| path.contains(':')),
        "must have no ':', because a container does not start with it", "use another path")),
    Rule("subPath|subPathExpr", Text(checks::is_descending,
        "must be a relative path without \"..\"", "remove the leading '/' or the \"..\"")),
    Rule("", Not(|mount| checks::is_set(&mount["subPath"]) && checks::is_set(&mount["subPathExpr"]),
        "must not have both subPath and subPathExpr", "remove one of them")),
    Rule("mountPropagation", Word(&["None", "HostToContainer", "Bidirectional"])),
    Rule("recursiveReadOnly", Word(&["Disabled", "IfPossible", "Enabled"])),
    Rule("", Not(|mount| checks::is_one_of(&mount["recursiveReadOnly"], &["IfPossible", "Enabled"]) && mount["readOnly"] != true,
        "must have readOnly: true for recursiveReadOnly", "set it, or remove recursiveReadOnly")),
];

const CONTAINER_SECURITY: &[Rule] = &[
    Rule("runAsUser|runAsGroup", ID),
    Rule("procMount", Word(&["Default", "Unmasked"])),
    Rule("", Not(|context| context["allowPrivilegeEscalation"] == false && context["privileged"] == true,
        "must not have privileged: true with allowPrivilegeEscalation: false", "remove one of them")),
    Rule("", Not(
        |context| context["allowPrivilegeEscalation"] == false && checks::list_has(&context["capabilities"]["add"], "CAP_SYS_ADMIN"),
        "must not add CAP_SYS_ADMIN with allowPrivilegeEscalation: false", "remove one of them")),
];

const PROBE: &[Rule] = &[
    Rule("", One(&["exec", "grpc", "httpGet", "tcpSocket"])),
    Rule("", Rules(HANDLER)),
    Rule("initialDelaySeconds|timeoutSeconds|periodSeconds|successThreshold|failureThreshold", Number(0, MAX_INT32)),
    Rule("terminationGracePeriodSeconds", Number(1, MAX_INT64)),
];

const HANDLER: &[Rule] = &[
    Rule("exec.command", Set("list the words of the command")),
    Rule("httpGet|tcpSocket.port", By(checks::port)),
    Rule("grpc.port", Number(1, 65_535)),
    Rule("httpGet.scheme", Word(&["HTTP", "HTTPS"])),
    Rule("httpGet.httpHeaders[].name", Not(
        |name| !name.as_str().is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')),
        "must be the name of a header", "use letters, digits and '-'")),
];

const VOLUME: &[Rule] = &[
    Rule("name", Set("name the volume")),
    Rule("name", LABEL),
    Rule("", By(checks::volume_source)),
    Rule("emptyDir.sizeLimit", By(resources::not_negative)),
    Rule("emptyDir.medium", Doubtful(
        |medium| medium.as_str().is_some_and(|medium| medium != "Memory" && !medium.starts_with("HugePages")),
        "must be Memory or HugePages, because a kubelet mounts no other", "did you mean Memory?")),
    Rule("hostPath.path", Set("set a path of the node")),
    Rule("hostPath.path", Text(|path| path.split('/').all(|part| part != ".."), "must not contain \"..\"", "use the path without it")),
    Rule("hostPath.type", Word(&["DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"])),
    Rule("secret.secretName", Set("name the Secret")),
    Rule("configMap.name", Set("name the ConfigMap")),
    Rule("persistentVolumeClaim.claimName", Set("name the claim")),
    Rule("nfs.server", Set("name the server")),
    Rule("nfs.path", Set("set the exported path")),
    Rule("nfs.path", Text(|path| path.starts_with('/'), "must be an absolute path", "begin it with '/'")),
    Rule("csi.driver", Set("name the driver")),
    Rule("csi.driver", Text(|driver| driver.len() <= 63 && names::subdomain(&driver.to_ascii_lowercase()).is_none(),
        "must be the name of a driver", "use a name such as csi.example.com")),
    Rule("secret|configMap|downwardAPI|projected.defaultMode", MODE),
    Rule("secret|configMap.items[]", Rules(KEY_TO_PATH)),
    Rule("downwardAPI.items[]", Rules(DOWNWARD_FILE)),
    Rule("projected.sources[]", Rules(PROJECTION)),
    Rule("projected", By(checks::projected_paths)),
    Rule("ephemeral.volumeClaimTemplate", Set("add the claim's template")),
    Rule("ephemeral.volumeClaimTemplate.spec", Rules(CLAIM)),
    Rule("image.pullPolicy", PULL_POLICIES),
    Rule("image.reference", Set("name the image")),
];

const KEY_TO_PATH: &[Rule] = &[
    Rule("key", Set("name the key in the object")),
    Rule("path", Set("name the file")),
    Rule("path", LOCAL_PATH),
    Rule("mode", MODE),
];

const FIELDS_OF_FILES: &[&str] =
    &["metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"];

const DOWNWARD_FILE: &[Rule] = &[
    Rule("path", Set("name the file")),
    Rule("path", LOCAL_PATH),
    Rule("mode", MODE),
    Rule("", One(&["fieldRef", "resourceFieldRef"])),
    Rule("fieldRef.fieldPath", Not(|path| !checks::is_field(path, FIELDS_OF_FILES),
        "must be a field that a file may have",
        "use metadata.name, metadata.namespace, metadata.uid, metadata.labels or metadata.annotations")),
    Rule("resourceFieldRef.containerName", Set("name the container")),
    Rule("resourceFieldRef", Rules(RESOURCE_FIELD)),
];

const PROJECTION: &[Rule] = &[
    Rule("", Not(|source| source.as_object().is_some_and(|source| source.len() > 1),
        "must have only one kind of source", "use an item for each")),
    Rule("secret|configMap.name", Set("name the object")),
    Rule("secret|configMap.items[]", Rules(KEY_TO_PATH)),
    Rule("downwardAPI.items[]", Rules(DOWNWARD_FILE)),
    Rule("serviceAccountToken.expirationSeconds", Number(600, 1 << 32)),
    Rule("serviceAccountToken.path", Set("name the file")),
];

const CLAIM: &[Rule] = &[
    Rule("accessModes", Set("add a mode, such as ReadWriteOnce")),
    Rule("accessModes[]", Word(&["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"])),
    Rule("accessModes", Not(|modes| checks::list_has(modes, "ReadWriteOncePod") && modes.as_array().is_some_and(|m| m.len() > 1),
        "must have no other mode beside ReadWriteOncePod", "remove the others")),
    Rule("resources", Not(|resources| resources["requests"]["storage"].is_null(),
        "must request storage", "set requests.storage to the size of the volume")),
    Rule("resources.requests.storage", By(resources::positive)),
    Rule("storageClassName", DNS_NAME),
    Rule("volumeMode", Word(&["Filesystem", "Block"])),
    Rule("selector", Rules(SELECTOR)),
];
