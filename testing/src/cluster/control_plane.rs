//! A control plane, and the namespaces of tests in it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Config;
use kube::api::{Api, PostParams};
use kube::config::Kubeconfig;
use tokio::sync::OnceCell;

use super::access::{ADMIN, MANAGER, config, write, write_users};
use super::api_server::{Slot, lock};
use super::audit::Audit;
use super::binaries::{self, Binaries};
use super::directory::Directory;
use super::process::{Background, Program};
use super::servers::{self, Layout};
use super::{ports, repository};

/// How a control plane is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whose requests are recorded for [`ControlPlane::audit`].
    pub audit: Option<Audit>,
    /// More flags for the API server.
    pub api_server_flags: Vec<String>,
}

/// A control plane. When it is dropped, its processes and files are gone; so they are, soon, when the
/// test process ends in any way.
pub struct ControlPlane {
    pub(super) kubectl: PathBuf,
    pub(super) config: Config,
    pub(super) definitions: OnceCell<()>,
    /// None for a cluster that was there before.
    pub(super) own: Option<Own>,
    pub(super) directory: Arc<Directory>,
}

/// The processes that are ours, in the order in which they end.
pub(super) struct Own {
    pub(super) options: Options,
    pub(super) layout: Layout,
    pub(super) manager: Slot,
    pub(super) api_server: Slot,
    pub(super) etcd: Background,
    pub(super) directory: Arc<Directory>,
}

impl ControlPlane {
    /// Starts a control plane of its own, for tests that stop it or read its audit log.
    pub async fn start(options: Options) -> Self {
        Self::try_start(options)
            .await
            .unwrap_or_else(|e| panic!("no control plane: {e}"))
    }

    /// Starts a control plane, or says why it cannot.
    pub async fn try_start(options: Options) -> Result<Self, String> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match Self::start_once(options.clone()).await {
                // Somebody took a port between our look and the server's.
                Err(e) if attempt < 3 && e.contains("address already in use") => {}
                other => return other,
            }
        }
    }

    /// The one that all tests of a test binary share, each in a namespace of its own: that of
    /// `TEST_KUBECONFIG` if it is set, else a new one. An operator for all namespaces needs one of its own, or it works on
    /// the jobs of other tests, too.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        let start = async || match std::env::var_os("TEST_KUBECONFIG").filter(|v| !v.is_empty()) {
            Some(file) => Self::existing(file.into()).await,
            None => Self::start(Options::default()).await,
        };
        SHARED.get_or_init(start).await
    }

    /// Whether it was started by the tests, so that it has no nodes and no admission of its own.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    async fn existing(file: PathBuf) -> Self {
        // A relative path is one from where `make` and `cargo` are called.
        let file = repository().join(file);
        let kubeconfig = Kubeconfig::read_from(&file).unwrap_or_else(|e| panic!("TEST_KUBECONFIG: {e}"));
        let kubectl = binaries::kubectl();
        let directory = Arc::new(Directory::new(&kubectl).expect("a directory"));
        let admin = directory.path().join(format!("{ADMIN}.kubeconfig"));
        write(&admin, &serde_json::json!(kubeconfig)).expect("the directory is ours");
        let config = config(&admin)
            .await
            .unwrap_or_else(|e| panic!("TEST_KUBECONFIG: {e}"));
        Self {
            kubectl,
            config,
            definitions: OnceCell::new(),
            own: None,
            directory,
        }
    }

    async fn start_once(options: Options) -> Result<Self, String> {
        let binaries = Binaries::find()?;
        let kubectl = binaries.path("kubectl");
        let layout = Layout {
            binaries,
            etcd: ports::free(),
            api_server: ports::free(),
        };
        let fail = |e: std::io::Error| e.to_string();
        let directory = Arc::new(Directory::new(&kubectl).map_err(fail)?);
        write_users(directory.path(), &servers::cluster(&layout, directory.path())).map_err(fail)?;
        if let Some(audit) = &options.audit {
            write(&directory.path().join("audit-policy.yaml"), &audit.policy()).map_err(fail)?;
        }
        let etcd = servers::etcd(&layout, directory.path())
            .start(&directory)
            .map_err(fail)?;
        let (manager, api_server) = (Mutex::new(None), Mutex::new(None));
        let own = Own {
            options,
            layout,
            manager,
            api_server,
            etcd,
            directory: Arc::clone(&directory),
        };
        own.launch_api_server()?;
        let config = own.ready().await?;
        let this = Self {
            kubectl,
            config,
            definitions: OnceCell::new(),
            own: Some(own),
            directory,
        };
        this.start_manager();
        Ok(this)
    }

    /// Starts the controller manager. It learns of new kinds only every half minute, so it is started
    /// anew when there are some.
    pub(super) fn start_manager(&self) {
        let Some(own) = &self.own else { return };
        let mut manager = lock(&own.manager);
        *manager = None;
        let program = servers::controller_manager(&own.layout, &self.user(MANAGER));
        *manager = Some(
            program
                .start(&self.directory)
                .expect("the controller manager starts"),
        );
    }

    /// A new namespace with a name that begins so.
    pub async fn namespace(&self, name: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}-{}-{count}", std::process::id());
        let metadata = ObjectMeta {
            name: Some(name.clone()),
            ..ObjectMeta::default()
        };
        let namespace = Namespace {
            metadata,
            ..Namespace::default()
        };
        let api: Api<Namespace> = Api::all(self.client());
        api.create(&PostParams::default(), &namespace)
            .await
            .expect("a namespace is made");
        if self.own.is_none() {
            self.directory
                .delete_namespace(&name)
                .expect("the janitor listens");
            self.default_account(&name).await;
        }
        name
    }

    /// Where somebody makes the service account `default`, no pod can be made before it is there.
    async fn default_account(&self, namespace: &str) {
        let elsewhere: Api<ServiceAccount> = Api::namespaced(self.client(), "default");
        if elsewhere
            .get_opt("default")
            .await
            .expect("the administrator may look")
            .is_some()
        {
            self.wait::<ServiceAccount>(namespace, "default", |account| account.is_some())
                .await;
        }
    }

    /// Starts a program, as the administrator unless it has a `KUBECONFIG` of its own. It starts in the
    /// repository's root.
    pub fn spawn(&self, program: Program) -> Background {
        let program = program.default_env("KUBECONFIG", self.kubeconfig());
        let program = program.default_directory(repository());
        let started = program.start(&self.directory);
        started.unwrap_or_else(|e| panic!("{program:?}: {e}"))
    }

    /// The directory of files that live as long as the control plane.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }
}
