//! Finds the cluster of a process, as kubectl does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use kube::Config;
use kube::config::{AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::config::{NamedAuthInfo, NamedCluster, NamedContext};

use super::flags::duration;
use super::proxy;

/// An error while the configuration of the cluster is loaded, or while a client is made from it: one sentence, with the
/// file and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ClusterConfigError(String);

impl ClusterConfigError {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }
}

/// The flags of kubectl that select a cluster, a user and their credentials.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterFlags {
    /// The context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config, or the service account of a pod].
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,
    /// The cluster of the kubeconfig [default: that of the context].
    #[arg(long, value_name = "NAME", help_heading = "Cluster", hide_short_help = true)]
    pub cluster: Option<String>,
    /// The user of the kubeconfig [default: that of the context].
    #[arg(long, value_name = "NAME", help_heading = "Cluster", hide_short_help = true)]
    pub user: Option<String>,
    /// The address of the API server.
    #[arg(
        short,
        long,
        value_name = "URL",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    pub server: Option<String>,
    /// The bearer token of the user.
    #[arg(long, value_name = "TOKEN", help_heading = "Cluster", hide_short_help = true)]
    pub token: Option<String>,
    /// The user to impersonate.
    #[arg(
        long = "as",
        value_name = "NAME",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    pub impersonate: Option<String>,
    /// A group to impersonate; can be repeated.
    #[arg(
        long = "as-group",
        value_name = "NAME",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    pub impersonate_groups: Vec<String>,
    /// The UID to impersonate.
    #[arg(
        long = "as-uid",
        value_name = "UID",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    pub impersonate_uid: Option<String>,
    /// The file with the certificate of the server's authority.
    #[arg(long, value_name = "FILE", help_heading = "Cluster", hide_short_help = true)]
    pub certificate_authority: Option<String>,
    /// The file with the certificate of the user.
    #[arg(long, value_name = "FILE", help_heading = "Cluster", hide_short_help = true)]
    pub client_certificate: Option<String>,
    /// The file with the key of the user's certificate.
    #[arg(long, value_name = "FILE", help_heading = "Cluster", hide_short_help = true)]
    pub client_key: Option<String>,
    /// The name in the server's certificate [default: that of its address].
    #[arg(long, value_name = "NAME", help_heading = "Cluster", hide_short_help = true)]
    pub tls_server_name: Option<String>,
    /// The time in which the server must respond, such as 5s; 0 means no limit.
    #[arg(long, value_name = "TIME", help_heading = "Cluster", hide_short_help = true, value_parser = timeout)]
    pub request_timeout: Option<Duration>,
    /// Do not check the certificate of the server.
    #[arg(long, help_heading = "Cluster", hide_short_help = true)]
    pub insecure_skip_tls_verify: bool,
}

impl ClusterFlags {
    /// Returns the flags that most commands have.
    pub fn new(kubeconfig: Option<&Path>, context: Option<&str>) -> Self {
        Self {
            kubeconfig: kubeconfig.map(Path::to_owned),
            context: context.map(str::to_owned),
            ..Self::default()
        }
    }

    fn apply(&self, cluster: &mut Cluster, user: &mut AuthInfo) {
        fn set<T: Clone>(field: &mut Option<T>, flag: &Option<T>) {
            if flag.is_some() {
                field.clone_from(flag);
            }
        }
        set(&mut cluster.server, &self.server);
        set(&mut cluster.tls_server_name, &self.tls_server_name);
        set(&mut cluster.certificate_authority, &self.certificate_authority);
        if self.certificate_authority.is_some() || self.insecure_skip_tls_verify {
            cluster.certificate_authority_data = None;
            cluster.insecure_skip_tls_verify = Some(self.insecure_skip_tls_verify);
        }
        set(&mut user.impersonate, &self.impersonate);
        set(&mut user.impersonate_uid, &self.impersonate_uid);
        if !self.impersonate_groups.is_empty() {
            user.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        set(&mut user.client_certificate, &self.client_certificate);
        set(&mut user.client_key, &self.client_key);
        if self.client_certificate.is_some() {
            user.client_certificate_data = None;
        }
        if self.client_key.is_some() {
            user.client_key_data = None;
        }
        if let Some(token) = &self.token {
            (user.token, user.token_file) = (Some(token.clone().into()), None);
        }
    }
}

/// Parses a time. As in kubectl, a number without a unit is in seconds.
fn timeout(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => duration(text),
    }
}

/// The address of a cluster with the credentials for it.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// The configuration of a client. Its proxy is the one to use, whatever the environment contains.
    pub config: Config,
    /// The source of the configuration, for messages: a context with its file, or the service account of a pod.
    pub origin: String,
}

impl ClusterConfig {
    /// Returns the namespace and the name of the service account that the token belongs to.
    pub(super) fn service_account(&self) -> Option<(String, String)> {
        // The texts of secrets are in the serialized form only.
        let user = serde_json::to_value(&self.config.auth_info).ok()?;
        let token = match user["tokenFile"].as_str() {
            Some(file) => std::fs::read_to_string(file).ok()?,
            None => user["token"].as_str()?.to_owned(),
        };
        let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
        let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
        let account = claims["sub"].as_str()?.strip_prefix("system:serviceaccount:")?;
        let (namespace, name) = account.split_once(':')?;
        Some((namespace.to_owned(), name.to_owned()))
    }
}

/// Returns the value of a variable that deployments of older operators set; `None` if it is empty.
pub(super) fn fallback(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Loads the address of a cluster and the credentials from the first of these sources:
///
/// * the file of the flags
/// * the file in `$USE_KUBE_CONFIG`, which deployments of older operators set
/// * the files in `$KUBECONFIG`, without those that do not exist, or `~/.kube/config`
/// * the service account of the pod in which this process runs, unless the flags select something
///
/// The client's own retries are off, because the caller decides what is retried.
///
/// # Errors
/// There is no configuration, or it cannot be used.
pub async fn cluster_config(flags: &ClusterFlags) -> Result<ClusterConfig, ClusterConfigError> {
    let given = flags.kubeconfig.clone();
    let given = given.or_else(|| fallback("USE_KUBE_CONFIG").map(PathBuf::from));
    let files = match &given {
        Some(file) => vec![file.clone()],
        None => default_files().into_iter().filter(|file| file.exists()).collect(),
    };
    let selects = [&flags.context, &flags.cluster, &flags.user, &flags.server];
    let mut cluster = match files.is_empty() && selects.iter().all(|flag| flag.is_none()) {
        true => ClusterConfig {
            config: Config::incluster().map_err(|_| none_found())?,
            origin: "the service account of this pod".to_owned(),
        },
        false => of_files(&files, flags).await?,
    };
    cluster.config.default_retry = false;
    cluster.config.read_timeout = flags.request_timeout.filter(|timeout| !timeout.is_zero());
    Ok(cluster)
}

fn default_files() -> Vec<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let listed: Vec<_> = std::env::split_paths(&listed)
        .filter(|file| !file.as_os_str().is_empty())
        .collect();
    match listed.is_empty() {
        true => std::env::home_dir()
            .map(|home| home.join(".kube/config"))
            .into_iter()
            .collect(),
        false => listed,
    }
}

fn none_found() -> ClusterConfigError {
    let files: Vec<_> = default_files()
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    ClusterConfigError(format!(
        "no cluster is configured: {} does not exist, and this process does not run in a pod; set --kubeconfig or KUBECONFIG",
        files.join(", ")
    ))
}

async fn of_files(files: &[PathBuf], flags: &ClusterFlags) -> Result<ClusterConfig, ClusterConfigError> {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let names = names.join(":");
    let mut all = Kubeconfig::default();
    for file in files {
        let wrong = |error| ClusterConfigError(format!("{}: {}", file.display(), unreadable(error)));
        let mut read = Kubeconfig::read_from(file).map_err(wrong)?;
        // kubectl writes an empty name if there is none.
        read.current_context = read.current_context.filter(|name| !name.is_empty());
        all = all.merge(read).map_err(wrong)?;
    }
    let name = flags.context.clone().or_else(|| all.current_context.clone());
    let name = name.unwrap_or_default();
    let found = all.contexts.iter().find(|context| context.name == name);
    let context = match found.and_then(|context| context.context.clone()) {
        Some(context) => context,
        None if name.is_empty() && flags.server.is_some() => Context::default(),
        None if name.is_empty() => {
            return Err(ClusterConfigError(format!(
                "{names}: has no current context; set --context"
            )));
        }
        None => {
            return Err(ClusterConfigError(format!(
                "{names}: has no context {name:?}; list the contexts with: kubectl config get-contexts"
            )));
        }
    };
    let origin = format!("context {name:?} in {names}");
    let wanted = flags.cluster.as_ref().unwrap_or(&context.cluster);
    let known = all.clusters.into_iter().find(|cluster| cluster.name == *wanted);
    let known = known.and_then(|cluster| cluster.cluster);
    if known.is_none() && flags.server.is_none() {
        return Err(ClusterConfigError(format!(
            "{origin}: its cluster {wanted:?} is not defined; define it, or set --cluster"
        )));
    }
    let mut cluster = known.unwrap_or_default();
    let wanted = flags.user.clone().or_else(|| context.user.clone());
    let known = all
        .auth_infos
        .into_iter()
        .find(|user| Some(&user.name) == wanted.as_ref());
    if known.is_none() && flags.user.is_some() {
        return Err(ClusterConfigError(format!(
            "{names}: has no user {:?}",
            wanted.unwrap_or_default()
        )));
    }
    let mut user = known.and_then(|user| user.auth_info).unwrap_or_default();
    flags.apply(&mut cluster, &mut user);
    if let Some(data) = &mut cluster.certificate_authority_data {
        data.retain(|c| !c.is_whitespace());
    }
    if let Some(server) = cluster.server.as_mut().filter(|server| !server.contains("://")) {
        let has_tls =
            cluster.certificate_authority.is_some() || cluster.insecure_skip_tls_verify == Some(true);
        *server = format!("{}://{server}", if has_tls { "https" } else { "http" });
    }
    // kube would compare NO_PROXY with the address of the proxy. This value keeps it from reading the environment.
    let own = cluster
        .proxy_url
        .replace("http://proxy".to_owned())
        .filter(|proxy| !proxy.is_empty());
    let one = Kubeconfig {
        clusters: vec![NamedCluster {
            name: name.clone(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: name.clone(),
            auth_info: Some(user),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: name.clone(),
            context: Some(Context {
                cluster: name.clone(),
                user: Some(name.clone()),
                namespace: context.namespace.filter(|namespace| !namespace.is_empty()),
                ..Context::default()
            }),
            ..NamedContext::default()
        }],
        current_context: Some(name),
        ..Kubeconfig::default()
    };
    let config = Config::from_custom_kubeconfig(one, &KubeConfigOptions::default()).await;
    let mut config =
        config.map_err(|error| ClusterConfigError(format!("{origin}: {}", unreadable(error))))?;
    let proxy = own.or_else(|| proxy::from_environment(&config.cluster_url, |name| std::env::var(name).ok()));
    let with_scheme = |proxy: String| match proxy.contains("://") {
        true => proxy,
        false => format!("http://{proxy}"),
    };
    let proxy = proxy.map(with_scheme).map(|proxy| proxy.parse());
    config.proxy_url = proxy.transpose().map_err(|_| {
        ClusterConfigError(format!(
            "{origin}: its proxy must be a URL such as http://host:3128"
        ))
    })?;
    Ok(ClusterConfig { config, origin })
}

/// Returns the problem of a kubeconfig without the name of its file, which some of kube's errors have and some lack.
fn unreadable(error: KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => {
            format!("cannot be read: {error}; set --kubeconfig or KUBECONFIG")
        }
        KubeconfigError::Parse(error) => format!("must be a kubeconfig: {error}"),
        other => other.to_string(),
    }
}
