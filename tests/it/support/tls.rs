//! A private certificate authority with one certificate for loopback.

use std::{io::Write as _, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::NamedTempFile;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};

/// What a TLS endpoint needs, and the file with the root that a client has to trust.
pub struct Tls {
    /// Accepts connections.
    pub acceptor: TlsAcceptor,
    /// The root certificate, PEM.
    pub ca_file: NamedTempFile,
}

impl Tls {
    /// A new authority, unknown to anybody else, and a certificate for those names.
    pub fn new(names: &[&str]) -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "a root of this test alone");
        let mut ca_file = NamedTempFile::new().unwrap();
        ca_file.write_all(ca.self_signed(&ca_key).unwrap().pem().as_bytes()).unwrap();
        let issuer = Issuer::new(ca, ca_key);

        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), ca_file }
    }
}
