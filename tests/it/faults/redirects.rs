//! A redirect is never followed, by no request, to nowhere.

use super::{Scene, one_error};
use crate::support::{Endpoint, Era, Harness, Recorded, Reply, four_eras};

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

four_eras!(a_redirect_is_one_error_and_its_target_sees_nothing, |harness_era, endpoint_era| async {
    let target = Endpoint::era(endpoint_era).start().await;
    let location = format!("{}?ticket=s3cret", target.url());
    let fault = {
        let location = location.clone();
        move |request: &Recorded| {
            let status = request.param("arguments")["status"].as_u64().unwrap();
            Reply::status(u16::try_from(status).unwrap()).with_header("location", &location)
        }
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    for status in STATUSES {
        let error = scene.fails(&["redirect"], &format!(r#"{{"status":{status}}}"#)).await;
        assert_eq!(error["data"]["httpStatus"], status, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&target.url()), "the message names origin and path: {message}");
        assert!(!error.to_string().contains("s3cret"), "a query is private: {error}");
    }
    assert_eq!(scene.broken_calls(), STATUSES.len());
    scene.unaffected().await;
    assert_eq!(target.requests().len(), 0, "the target of a redirect must not see a request");
});

four_eras!(a_redirect_to_the_same_origin_is_not_followed, |harness_era, endpoint_era| async {
    let fault = |_: &Recorded| Reply::status(308).with_header("location", "/mcp/");
    let error = one_error((harness_era, endpoint_era), &["redirect"], Some(308), fault).await;
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("/mcp/"), "{message}");
    assert!(message.contains("--url"), "the message says which --url to use: {message}");
});

four_eras!(a_redirect_without_a_target_is_one_error, |harness_era, endpoint_era| async {
    let fault = |_: &Recorded| Reply::status(302);
    one_error((harness_era, endpoint_era), &["redirect"], Some(302), fault).await;
});

four_eras!(a_redirect_to_a_dangerous_place_is_one_error, |harness_era, endpoint_era| async {
    let fault =
        |_: &Recorded| Reply::status(302).with_header("location", "javascript:alert(1)//\u{202e}http://x");
    one_error((harness_era, endpoint_era), &["redirect"], Some(302), fault).await;
});

four_eras!(a_redirect_at_start_is_not_followed, |harness_era, endpoint_era| async {
    let target = Endpoint::era(endpoint_era).start().await;
    let location = target.url();
    let away = move |_: &Recorded| Reply::status(307).with_header("location", &location);
    let endpoint =
        Endpoint::era(endpoint_era).on("server/discover", away.clone()).on("initialize", away).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    assert!(harness.open(harness_era, "{}").await.is_error());
    assert_eq!(harness.wait_exit().await.0, 69);
    let stderr = harness.stderr_text();
    assert!(stderr.contains(&target.url()), "{stderr}");
    assert_eq!(target.requests().len(), 0);
});
