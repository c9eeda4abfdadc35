//! The certificates and the token of a cluster, made anew at each start.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use serde_json::json;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::ServerError;

/// The certificate of the server and the token of its clients.
pub(super) struct Credentials {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivateKeyDer<'static>,
    /// The certificate of the authority that signed the server's, in PEM.
    authority: String,
    pub(super) token: String,
}

impl Credentials {
    pub(super) fn generate() -> Result<Self, ServerError> {
        let mut authority = CertificateParams::default();
        authority.distinguished_name = named("local cluster");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let mut server = CertificateParams::new(vec!["localhost".to_owned()])?;
        server.distinguished_name = named("API server of a local cluster");
        server
            .subject_alt_names
            .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::from)?;
        let certificate = server.signed_by(&key, &issuer)?;
        Ok(Self {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            authority: authority_certificate.pem(),
            token: URL_SAFE_NO_PAD.encode(secret),
        })
    }

    /// Returns a kubeconfig for a server at this address. YAML includes JSON.
    pub(super) fn kubeconfig(&self, address: SocketAddr) -> String {
        let name = "local";
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {
                "server": format!("https://{address}"),
                "certificate-authority-data": STANDARD.encode(&self.authority),
            }}],
            "users": [{"name": name, "user": {"token": self.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
            "current-context": name,
        });
        format!("{kubeconfig:#}\n")
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut all = DistinguishedName::new();
    all.push(DnType::CommonName, name);
    all
}
