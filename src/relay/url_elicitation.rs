//! The 2025-11-25 error -32042 ("URL elicitation required") in the form a modern harness knows.

use crate::wire::code::MISSING_CLIENT_CAPABILITY;
use crate::wire::request::input_required;
use crate::wire::{Client, Message, Object, json};

use super::refusal;

const URL_ELICITATION_REQUIRED: &str = "-32042";

/// What such an error becomes: an `input_required` result that asks to open the URLs, or, for a harness that
/// cannot do that, the error that says so. `None` for any other error.
pub(super) fn as_question(error: &Object<'_>, client: &Client) -> Option<Result<Message, String>> {
    if error.get("code") != Some(URL_ELICITATION_REQUIRED) {
        return None;
    }
    let data = error.object("data").ok()??;
    let asked = json::array_items(data.get("elicitations")?).ok()?;
    if !client.elicitation_url {
        let data = r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#;
        return Some(Err(refusal::error(
            MISSING_CLIENT_CAPABILITY,
            "the endpoint needs the user to open a URL",
            Some(data),
        )));
    }
    let mut requests = Vec::new();
    for (at, (text, _)) in asked.iter().enumerate() {
        let one = Object::read(text).ok()?;
        let (message, url) = (one.string("message").unwrap_or_default(), one.string("url")?);
        let params =
            format!(r#"{{"mode":"url","message":{},"url":{}}}"#, json::quote(&message), json::quote(&url));
        requests.push(format!(r#""url-{at}":{{"method":"elicitation/create","params":{params}}}"#));
    }
    if requests.is_empty() {
        return None;
    }
    input_required(&requests.join(","), None).map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: &str = r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://a.example/x","message":"Sign?"}]}}"#;

    #[test]
    fn it_becomes_a_question_or_says_what_is_missing() {
        let error = Object::read(ERROR).unwrap();
        let able = Client { elicitation_url: true, ..Client::default() };
        let question = as_question(&error, &able).unwrap().unwrap();
        assert_eq!(
            question.result().unwrap(),
            r#"{"resultType":"input_required","inputRequests":{"url-0":{"method":"elicitation/create","params":{"mode":"url","message":"Sign?","url":"https://a.example/x"}}}}"#
        );
        assert!(as_question(&error, &Client::default()).unwrap().unwrap_err().contains("-32021"));
        assert!(as_question(&Object::read(r#"{"code":-32602,"message":"m"}"#).unwrap(), &able).is_none());
    }
}
