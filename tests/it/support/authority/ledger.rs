//! Who is registered, what was granted, and which tokens came of it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::Instant;

/// How a client authenticates itself at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// Not at all; its id is in the body.
    None,
    /// Id and secret in the body.
    Post,
    /// Id and secret in the header.
    Basic,
}

impl AuthMethod {
    /// The name that metadata knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Post => "client_secret_post",
            Self::Basic => "client_secret_basic",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::None, Self::Post, Self::Basic].into_iter().find(|method| method.name() == name)
    }
}

/// A client that the server knows.
#[derive(Clone, Debug)]
pub struct KnownClient {
    /// `client_id`
    pub id: String,
    /// `client_secret`
    pub secret: Option<String>,
    /// Seconds since 1970, where it ends.
    pub secret_expires_at: Option<u64>,
    /// How it authenticates itself.
    pub method: AuthMethod,
    /// Where it may be called back; empty: at any port of 127.0.0.1, on `/callback`.
    pub redirect_uris: Vec<String>,
    /// It was registered by itself, not by the operator.
    pub registered: bool,
}

/// What a code stands for.
#[derive(Clone, Debug)]
pub struct Code {
    /// For whom.
    pub client: String,
    /// Where it went.
    pub redirect_uri: String,
    /// The hash of the verifier.
    pub challenge: String,
    /// What for.
    pub resource: String,
    /// The scopes granted.
    pub granted: String,
    /// What the token response says of scopes.
    pub said: Option<String>,
    /// The grant that came of it, once it was used.
    pub used: Option<usize>,
}

/// What a person allowed a client.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Whom.
    pub client: String,
    /// For what.
    pub resource: String,
    /// The scopes.
    pub granted: String,
    /// What the token response says of scopes.
    pub said: Option<String>,
    /// It is over.
    pub revoked: bool,
}

/// An access token.
#[derive(Clone, Debug)]
pub struct Access {
    grant: usize,
    ends: Option<Instant>,
    dead: bool,
}

/// A refresh token.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// The grant it renews.
    pub grant: usize,
    /// It was used, and another one came for it.
    pub spent: bool,
}

/// What a bearer token is good for.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It was never issued here.
    Unknown,
    /// It is expired or revoked.
    Dead,
    /// It is good.
    Good {
        /// For that resource.
        resource: String,
        /// For those scopes.
        scopes: BTreeSet<String>,
        /// Until then.
        ends: Option<Instant>,
    },
}

/// All of it.
#[derive(Default)]
pub struct Ledger {
    pub clients: BTreeMap<String, KnownClient>,
    /// Ids that were known once and are forgotten.
    pub forgotten: HashSet<String>,
    /// Queries of authorization requests, by state.
    pub states: HashMap<String, String>,
    /// States, by challenge.
    pub challenges: HashMap<String, String>,
    pub codes: HashMap<String, Code>,
    pub grants: Vec<Grant>,
    pub access: HashMap<String, Access>,
    pub refresh: HashMap<String, Refresh>,
    pub resources: BTreeSet<String>,
    pub spent_reuses: usize,
    pub token_requests: usize,
    /// What was presented for revocation.
    pub revoked: Vec<String>,
}

impl Ledger {
    /// A new access token of a grant.
    pub fn new_access(&mut self, grant: usize, life: Option<u64>) -> String {
        let token = random("access");
        let ends = life.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        self.access.insert(token.clone(), Access { grant, ends, dead: false });
        token
    }

    /// A new refresh token of a grant.
    pub fn new_refresh(&mut self, grant: usize) -> String {
        let token = random("refresh");
        self.refresh.insert(token.clone(), Refresh { grant, spent: false });
        token
    }

    /// What an access token is good for now.
    pub fn standing(&self, token: &str) -> Standing {
        let Some(access) = self.access.get(token) else { return Standing::Unknown };
        let grant = &self.grants[access.grant];
        let over = access.ends.is_some_and(|ends| ends <= Instant::now());
        if access.dead || over || grant.revoked {
            return Standing::Dead;
        }
        Standing::Good {
            resource: grant.resource.clone(),
            scopes: grant.granted.split_whitespace().map(str::to_owned).collect(),
            ends: access.ends,
        }
    }

    /// An access token ends now; false where it was never issued.
    pub fn end_access(&mut self, token: &str) -> bool {
        self.access.get_mut(token).map(|access| access.dead = true).is_some()
    }

    /// All access tokens end now; the grants live.
    pub fn end_all_access(&mut self) {
        self.access.values_mut().for_each(|access| access.dead = true);
    }
}

/// A new text that nobody can guess.
pub fn random(what: &str) -> String {
    let mut bytes = [0; 18];
    SystemRandom::new().fill(&mut bytes).unwrap();
    format!("{what}-{}", URL_SAFE_NO_PAD.encode(bytes))
}
