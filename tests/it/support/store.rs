//! The file of sign-ins, written by hand and read back.

use std::{io::Write as _, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::authority::{AuthMethod, Authority};

/// The name of the file.
const NAME: &str = "oauth.json";

/// A folder for `--config-dir`, for its owner alone.
pub struct ConfigDir {
    folder: TempDir,
}

impl ConfigDir {
    /// An empty one.
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        restrict(folder.path(), 0o700);
        Self { folder }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where the file of sign-ins is, or would be.
    pub fn file(&self) -> std::path::PathBuf {
        self.path().join(NAME)
    }

    /// Writes the file anew, with those sign-ins.
    pub fn write(&self, sign_ins: &[&SignIn]) {
        let members = sign_ins.iter().map(|sign_in| (sign_in.url.clone(), sign_in.record.clone()));
        let members: serde_json::Map<String, Value> = members.collect();
        let whole = json!({"format": "mcp-hasp sign-ins", "version": 1, "sign_ins": members});
        self.write_raw(&serde_json::to_string_pretty(&whole).unwrap());
    }

    /// Writes the file anew, with that text.
    pub fn write_raw(&self, text: &str) {
        let mut file = std::fs::File::create(self.file()).unwrap();
        restrict(&self.file(), 0o600);
        file.write_all(text.as_bytes()).unwrap();
    }

    /// The file as it is now; `Null` where there is none.
    pub fn read(&self) -> Value {
        match std::fs::read(self.file()) {
            Ok(text) => serde_json::from_slice(&text).unwrap(),
            Err(_) => Value::Null,
        }
    }

    /// Changes the record of one URL, as somebody else would.
    pub fn change_record(&self, url: &str, change: impl FnOnce(&mut Value)) {
        let mut whole = self.read();
        change(&mut whole["sign_ins"][url]);
        self.write_raw(&whole.to_string());
    }

    /// The record of one URL as it is now; `Null` where there is none.
    pub fn record(&self, url: &str) -> Value {
        self.read()["sign_ins"][url].clone()
    }
}

/// A sign-in to be written by hand.
#[derive(Clone, Debug)]
#[must_use]
pub struct SignIn {
    url: String,
    record: Value,
    /// Its access token.
    pub access: String,
    /// Its refresh token.
    pub refresh: String,
}

impl SignIn {
    /// A sign-in at that authorization server, with tokens issued now for an hour. The resource is the URL.
    pub fn issued(authority: &Authority, url: &str, scopes: &str) -> Self {
        Self::issued_for(authority, url, url, scopes)
    }

    /// The same for another resource.
    pub fn issued_for(authority: &Authority, url: &str, resource: &str, scopes: &str) -> Self {
        let client = authority.stored_client();
        let (access, refresh) = authority.issue(resource, scopes);
        let scopes: Vec<&str> = scopes.split_whitespace().collect();
        let metadata = authority.metadata();
        let mut known = json!({
            "id": client.id,
            "authentication": client.method.name(),
            "origin": if client.registered { "registered" } else { "given" },
        });
        if client.method != AuthMethod::None {
            known["secret"] = client.secret.into();
        }
        if let (true, Some(uri)) = (client.registered, client.redirect_uris.first()) {
            known["redirect_uri"] = uri.clone().into();
        }
        let mut record = json!({
            "issuer": authority.issuer(),
            "resource": resource,
            "client": known,
            "token_endpoint": metadata["token_endpoint"],
            "signed_in_at": now_in_ms(),
            "tokens": {
                "access": access, "refresh": refresh, "obtained_at": now_in_ms(), "expires_at": now_in_ms() + 3_600_000,
            },
        });
        if metadata["revocation_endpoint"].is_string() {
            record["revocation_endpoint"] = metadata["revocation_endpoint"].clone();
        }
        if !scopes.is_empty() {
            record["asked"] = scopes.clone().into();
            record["granted"] = scopes.into();
        }
        Self { url: url.to_owned(), record, access, refresh }
    }

    /// Obtained that many seconds ago, and ending that many seconds from now (negative: it has ended).
    pub fn times(self, obtained_ago: u64, ends_in: i64) -> Self {
        self.change(|record| {
            record["tokens"]["obtained_at"] = (now_in_ms() - 1000 * obtained_ago).into();
            record["tokens"]["expires_at"] = now_in_ms().saturating_add_signed(1000 * ends_in).into();
        })
    }

    /// The server never said when it ends.
    pub fn no_expiry(self) -> Self {
        self.change(|record| {
            record["tokens"].as_object_mut().unwrap().remove("expires_at");
        })
    }

    /// Changes the record.
    pub fn change(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.record);
        self
    }
}

/// Milliseconds since 1970.
pub fn now_in_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_millis().try_into().unwrap()
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn restrict(_: &Path, _: u32) {}
