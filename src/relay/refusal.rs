//! Reasons → JSON-RPC errors. Codes outside the range the specification reserves; programs read `data.reason`.

use crate::endpoint::{SignInTrouble, Trouble};
use crate::report::quoted;
use crate::surface::gate::{Refusal, Withheld};
use crate::wire::code::{INTERNAL, INVALID_PARAMS};
use crate::wire::json::quote;

/// An error object.
pub fn error(code: i64, message: &str, data: Option<&str>) -> String {
    let data = data.map(|data| format!(",\"data\":{data}")).unwrap_or_default();
    format!("{{\"code\":{code},\"message\":{}{data}}}", quote(message))
}

/// An error of this program's own.
pub fn own(reason: &str, message: &str) -> String {
    error(INTERNAL, message, Some(&format!("{{\"reason\":\"{reason}\"}}")))
}

/// Trouble with the endpoint.
pub fn trouble(found: &Trouble, during: &str) -> String {
    let mut data = format!("{{\"reason\":\"{}\"", found.reason());
    if let Some(status) = found.http_status() {
        data.push_str(&format!(",\"httpStatus\":{status}"));
    }
    if let Some(seconds) = found.retry_after() {
        data.push_str(&format!(",\"retryAfterSeconds\":{seconds}"));
    }
    let unknown_outcome = during == "tools/call" && found.may_have_run();
    if unknown_outcome {
        data.push_str(",\"mayHaveRun\":true");
    }
    data.push('}');
    let message = match found {
        _ if unknown_outcome => format!("{found}; the call may have run, and is not repeated"),
        // Before the surface was verified no word of the endpoint reaches the model; stderr has it.
        Trouble::Refused { method, code, .. } if during == "opening" => {
            format!("the endpoint answered {method} with error {code}; its words are on stderr")
        }
        Trouble::NotMcp(_) if during == "opening" => {
            "no MCP server that this version can talk to; the reason is on stderr".into()
        }
        Trouble::SignIn { kind, login, .. } => sign_in(*kind, login),
        Trouble::SignInRequired { login: Some(_), .. } | Trouble::Forbidden { login: Some(_), .. } => {
            format!("{found}; {}", found.advice())
        }
        Trouble::Redirect { .. } => format!("{found}; {}", found.advice()),
        _ => found.to_string(),
    };
    error(INTERNAL, &message, Some(&data))
}

/// Our own words alone: what an authorization server says is on stderr.
fn sign_in(kind: SignInTrouble, login: &str) -> String {
    match kind {
        SignInTrouble::Waiting => format!(
            "a sign-in waits for the user in the browser; once it is done, try again; or run {login} in a terminal"
        ),
        SignInTrouble::Passing => {
            "the sign-in cannot be renewed for the moment, and is kept; the reason is on stderr, try again in a moment"
                .into()
        }
        SignInTrouble::Failed => format!(
            "there is no sign-in; the reason is on stderr; run {login} in a terminal, then try again"
        ),
        SignInTrouble::Store => format!(
            "the stored sign-in cannot be used; the reason is on stderr; put that right, or run {login} in a terminal"
        ),
    }
}

/// The surface is not the pinned one any more.
pub fn sealed(may_have_run: bool) -> String {
    let data = match may_have_run {
        true => r#"{"reason":"surface_changed","mayHaveRun":true}"#,
        false => r#"{"reason":"surface_changed"}"#,
    };
    error(INTERNAL, &Trouble::Sealed.to_string(), Some(data))
}

/// A request that may not leave.
pub fn refused(refusal: &Refusal) -> String {
    let (kind, name, reason) = match refusal {
        Refusal::UnknownTool(name) => ("tool", name, "unknown_tool"),
        Refusal::UnknownPrompt(name) => ("prompt", name, "unknown_prompt"),
        Refusal::UnknownTemplate(name) => ("resource template", name, "unknown_template"),
        Refusal::Sealed => return sealed(false),
    };
    let message = format!("{kind} {} is not in the list read at start; nothing was sent", quoted(name, 120));
    error(INVALID_PARAMS, &message, Some(&format!("{{\"reason\":\"{reason}\"}}")))
}

/// An answer that may not be shown.
pub fn withheld(withheld: &Withheld, method: &str) -> String {
    match withheld {
        Withheld::Malformed(why) => {
            own("malformed_answer", &format!("the endpoint's answer is malformed ({why})"))
        }
        Withheld::UnknownResultType(found) => own(
            "unknown_result_type",
            &format!("the endpoint's result is of the type {found}, which is not known"),
        ),
        Withheld::Sealed => sealed(method == "tools/call"),
        Withheld::Question(why) => {
            own("question_refused", &format!("the endpoint's question is not passed on: {why}"))
        }
    }
}
