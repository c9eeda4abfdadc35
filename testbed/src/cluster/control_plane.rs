//! A control plane, and the namespaces of its tests.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Config;
use kube::api::{Api, PostParams};
use kube::config::Kubeconfig;
use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::audit::Call;
use super::binaries::{self, Binaries};
use super::directory::Directory;
use super::own::{Options, Own};
use super::process::{Background, Program};
use super::servers::{self, Layout};
use super::users::{ADMIN, MANAGER, config, write, write_users};
use super::{ports, repository};

/// A permit for each concurrent control plane of a single test. One takes some 400 MB, and a core while it starts.
static PERMITS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new(2 * cores)
});

/// A control plane. Dropping it ends its processes and removes its files. The same happens soon after the test
/// process ends in any way.
pub struct ControlPlane {
    pub(super) kubectl: PathBuf,
    pub(super) config: Config,
    pub(super) definitions: OnceCell<()>,
    /// `None` for an existing cluster.
    pub(super) own: Option<Own>,
    pub(super) directory: Arc<Directory>,
    /// `None` for a control plane of several tests.
    _permit: Option<SemaphorePermit<'static>>,
}

impl ControlPlane {
    /// Starts a separate control plane, for a test that stops it or reads its audit log. Waits while as many run as
    /// the machine has capacity for.
    pub async fn start(options: Options) -> Self {
        Self::try_start(options)
            .await
            .unwrap_or_else(|e| panic!("no control plane: {e}"))
    }

    /// Starts a control plane like [`start`](Self::start), or returns the reason for a failure.
    pub async fn try_start(options: Options) -> Result<Self, String> {
        let permit = PERMITS.acquire().await.map_err(|e| e.to_string())?;
        let mut this = Self::launch(options).await?;
        this._permit = Some(permit);
        Ok(this)
    }

    /// Starts a control plane without a permit, for several tests that use it until the process ends. With a permit,
    /// such control planes could take the last one that other tests wait for.
    pub async fn start_at_once(options: Options) -> Self {
        Self::launch(options)
            .await
            .unwrap_or_else(|e| panic!("no control plane: {e}"))
    }

    async fn launch(options: Options) -> Result<Self, String> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match Self::start_once(options.clone()).await {
                // Another process took a port after it was found free and before the server used it.
                Err(e) if attempt < 3 && e.contains("address already in use") => {}
                other => return other,
            }
        }
    }

    /// Returns the control plane that all tests of a test binary share, each in its own namespace. It is the cluster
    /// of `TEST_KUBECONFIG` if that is set, otherwise a new one. An operator for all namespaces needs a separate
    /// control plane, because it would also manage the jobs of other tests.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        let start = async || match std::env::var_os("TEST_KUBECONFIG").filter(|v| !v.is_empty()) {
            Some(file) => Self::existing(file.into()).await,
            None => Self::start_at_once(Options::default()).await,
        };
        SHARED.get_or_init(start).await
    }

    /// Returns the control plane for tests of clients, which all tests of a test binary share: it serves only the kinds
    /// that an installation has by default.
    pub async fn of_default_kinds() -> &'static Self {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        let start = async || {
            let plane = Self::start_at_once(Options::default()).await;
            plane.install_default_crds().await;
            plane
        };
        SHARED.get_or_init(start).await
    }

    /// Returns true if the tests started the control plane. It then has no nodes and no additional admission.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    async fn existing(file: PathBuf) -> Self {
        // A relative path starts at the repository's root, where `make` and `cargo` are called.
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
            _permit: None,
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
            _permit: None,
        };
        this.start_manager();
        Ok(this)
    }

    /// Starts the controller manager, or restarts it. It discovers new kinds only every half minute, so it is
    /// restarted after kinds were added.
    pub(super) fn start_manager(&self) {
        let Some(own) = &self.own else { return };
        let mut manager = own.manager.lock();
        *manager = None;
        let program = servers::controller_manager(&own.layout, &self.user(MANAGER), &own.options.controllers);
        *manager = Some(
            program
                .start(&self.directory)
                .expect("the controller manager starts"),
        );
    }

    /// Creates a namespace whose name starts with this prefix, and returns its name.
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

    /// Waits for the service account `default`, in a cluster that creates one. No pod can be created before it
    /// exists.
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

    /// Starts a program, as the administrator unless the program has its own `KUBECONFIG`. Its default directory is
    /// the repository's root.
    pub fn spawn(&self, program: Program) -> Background {
        let program = program.default_env("KUBECONFIG", self.kubeconfig());
        let program = program.default_directory(repository());
        let started = program.start(&self.directory);
        started.unwrap_or_else(|e| panic!("{program:?}: {e}"))
    }

    /// Returns the directory of files that live as long as the control plane.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Returns all recorded calls so far, in order. A call is recorded by the time its response arrives.
    pub fn audit(&self) -> Vec<Call> {
        let own = self
            .own
            .as_ref()
            .expect("only a control plane of our own has an audit log");
        assert!(own.options.audit.is_some(), "Options::audit was not set");
        let log = fs::read_to_string(self.directory.path().join("audit.log")).unwrap_or_default();
        // The last line may be incomplete.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().map(Call::parse).collect()
    }
}
