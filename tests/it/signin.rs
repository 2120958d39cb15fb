//! Signing in, and staying signed in: the real binary, a strict authorization server, a person with a browser.

mod failing;
mod first;
mod kept;
mod numbers;
mod renewing;
mod secrets;

use crate::support::{
    Authority, AuthorityBuilder, ConfigDir, Endpoint, EndpointBuilder, Era, Harness, Launch, SignIn,
};

/// The path of a tool's result in its answer.
const GOOD: &str = "\"content\"";

/// An authorization server, an endpoint that it protects, and an empty folder of sign-ins.
struct Place {
    authority: Authority,
    endpoint: Endpoint,
    folder: ConfigDir,
}

impl Place {
    async fn new() -> Self {
        Self::with(|authority| authority, |endpoint| endpoint).await
    }

    async fn with(
        authority: impl FnOnce(AuthorityBuilder) -> AuthorityBuilder,
        endpoint: impl FnOnce(EndpointBuilder) -> EndpointBuilder,
    ) -> Self {
        Self::of(Era::Modern, authority, endpoint).await
    }

    async fn of(
        era: Era,
        authority: impl FnOnce(AuthorityBuilder) -> AuthorityBuilder,
        endpoint: impl FnOnce(EndpointBuilder) -> EndpointBuilder,
    ) -> Self {
        let authority = authority(Authority::builder()).start().await;
        let endpoint = endpoint(Endpoint::era(era).protected_by(&authority)).start().await;
        Place { authority, endpoint, folder: ConfigDir::new() }
    }

    fn url(&self) -> String {
        self.endpoint.url()
    }

    /// The program for the endpoint, with this folder.
    fn launch(&self) -> Launch {
        Harness::launch(&self.url()).config_dir(self.folder.path()).arg("--no-browser")
    }

    /// A sign-in that was stored earlier.
    fn stored(&self) -> SignIn {
        let sign_in = SignIn::issued(&self.authority, &self.url(), "");
        self.folder.write(&[&sign_in]);
        sign_in
    }

    /// The same, its access token dead since a while.
    fn expired(&self) -> SignIn {
        let sign_in = SignIn::issued(&self.authority, &self.url(), "").times(7200, -3600);
        self.authority.expire(&sign_in.access);
        self.folder.write(&[&sign_in]);
        sign_in
    }

    fn record(&self) -> serde_json::Value {
        self.folder.record(&self.url())
    }

    fn finish(self) {
        self.endpoint.finish();
        self.authority.finish();
    }
}

/// Opens, and calls a tool with success.
async fn works(harness: &mut Harness, era: Era) {
    let answer = harness.open(era, "{}").await;
    assert!(!answer.is_error(), "{}", answer.text());
    calls(harness).await;
}

/// Calls a tool with success.
async fn calls(harness: &mut Harness) {
    let answer = harness.call("echo", r#"{"text":"a"}"#).await;
    assert!(answer.text().contains(GOOD), "{}", answer.text());
}

/// Closes stdin and ends with 0.
async fn leaves(mut harness: Harness) {
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0, "{}", harness.stderr_text());
}
