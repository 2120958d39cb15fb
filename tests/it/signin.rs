//! Signing in, and staying signed in: the real binary, a strict authorization server, a person with a browser.

mod discovery;
mod failing;
mod first;
mod kept;
mod numbers;
mod redirects;
mod registering;
mod renewing;
mod scopes;
mod secrets;
mod waiting;

use crate::support::{
    Authority, AuthorityBuilder, ConfigDir, Endpoint, EndpointBuilder, Era, Harness, Launch, Run, SignIn,
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
        self.launch_with_browser().arg("--no-browser")
    }

    /// The same, free to open a browser; there is none.
    fn launch_with_browser(&self) -> Launch {
        Harness::launch(&self.url()).config_dir(self.folder.path())
    }

    /// Signs in ahead of time; the person says yes.
    async fn login(&self, args: &[&str]) -> Run {
        let mut login = self.launch().arg("--login").args(args).spawn();
        let link = login.sign_in_link().await;
        let (status, page) = self.authority.sign_in(&link).await;
        let run = login.finish().await;
        assert_eq!((run.code, status), (0, 200), "{}\n{page}", run.stderr);
        run
    }

    /// Signing in ahead of time fails before a person is asked, in one line with all those words.
    async fn no_login(&self, args: &[&str], words: &[&str]) {
        let run = self.launch().arg("--login").args(args).run().await;
        assert_eq!(run.code, 77, "{}", run.stderr);
        assert!(!run.stderr.contains("code_challenge="), "{}", run.stderr);
        let errors: Vec<&str> = run.stderr.lines().filter(|line| line.contains("error:")).collect();
        assert_eq!(errors.len(), 1, "{}", run.stderr);
        for word in words {
            assert!(errors[0].contains(word), "no {word:?} in: {}", errors[0]);
        }
        assert!(self.authority.requests_of("/authorize").is_empty());
        assert!(self.authority.requests_of("/register").is_empty(), "nothing is registered in vain");
        assert!(self.record().is_null());
    }

    /// What was stored serves a session.
    async fn serves(&self) {
        let mut harness = self.launch().start();
        works(&mut harness, Era::Modern).await;
        assert!(harness.sign_in_links().is_empty());
        leaves(harness).await;
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
