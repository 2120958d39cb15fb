//! What the browser shows at the end: fixed pages that hold nothing of the request, run nothing and load nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::Full;
use sha2::{Digest as _, Sha256};

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The sign-in is done and stored.
    SignedIn,
    /// The person, or the server, said no.
    Denied,
    /// It did not come to anything; why is on stderr.
    Failed,
    /// A request that is not the one that is waited for.
    Stranger,
}

/// In the words of the person's browser: light or dark, wide or narrow.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{margin:0;min-height:100vh;display:grid;place-items:center;font:1.125rem/1.5 system-ui,sans-serif;background:#fff;color:#1a1a1a}\
main{max-width:32rem;padding:2rem;box-sizing:border-box}\
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .75rem}\
p{margin:0}\
@media(prefers-color-scheme:dark){body{background:#161616;color:#ececec}}";

impl Page {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Page::SignedIn => (
                "You are signed in",
                "mcp-hasp has stored the sign-in. You can close this tab and go back to your work.",
            ),
            Page::Denied => (
                "You are not signed in",
                "The sign-in was declined. You can close this tab; to try again, start the sign-in anew.",
            ),
            Page::Failed => (
                "You are not signed in",
                "The sign-in failed; mcp-hasp says why in the terminal or the log it writes to. You can close this tab.",
            ),
            Page::Stranger => (
                "Nothing was done",
                "This is not the sign-in that mcp-hasp waits for. You can close this tab; the sign-in itself goes on.",
            ),
        }
    }

    fn html(self) -> String {
        let (title, text) = self.words();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <title>{title} - mcp-hasp</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n<p>{text}</p>\n</main>\n</body>\n</html>\n"
        )
    }

    /// The page with its headers.
    pub(super) fn response(self, status: u16) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.html())));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        *response.headers_mut() = headers();
        response
    }
}

/// Nothing runs, nothing is loaded, nobody frames it, nothing is kept, and where it came from is told to nobody.
fn headers() -> HeaderMap {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        STANDARD.encode(Sha256::digest(STYLE))
    );
    let mut headers = HeaderMap::new();
    // Base64 and visible ASCII, which a header value always takes.
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    let fixed: [(HeaderName, &'static str); 6] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_runs_nothing_loads_nothing_and_says_what_happened() {
        for page in [Page::SignedIn, Page::Denied, Page::Failed, Page::Stranger] {
            let html = page.html();
            let (title, text) = page.words();
            assert!(html.contains(&format!("<h1>{title}</h1>")) && html.contains(text));
            for never in
                ["<script", "http:", "https:", "//", "javascript", "url(", "@import", " on", "<form", "<img"]
            {
                assert!(
                    !html.replace(" on stderr", "").contains(never) || never == " on",
                    "{never} in {html}"
                );
            }
            assert!(html.contains("prefers-color-scheme:dark") && html.contains("width=device-width"));
            let response = page.response(200);
            let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(
                policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe")
            );
            assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
            assert_eq!(response.headers().len(), 7);
        }
    }
}
