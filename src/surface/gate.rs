//! What may leave and what may be shown. A check gives a proof, and the next step takes the proof.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::observed::Kind;
use super::pin::Verified;
use super::seal::Seal;
use crate::wire::{Era, Message, Object, Question, Request, json, method};

/// Decides, for a surface that was verified. There is none without one.
#[derive(Debug)]
pub struct Gate {
    verified: Verified,
    seal: Arc<Seal>,
}

/// Why a request does not leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A tool that is not in the list read at start.
    UnknownTool(String),
    /// A prompt that is not in the list read at start.
    UnknownPrompt(String),
    /// A resource template that is not in the list read at start.
    UnknownTemplate(String),
    /// The surface is not the pinned one any more.
    Sealed,
}

/// Why an answer is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Not an unambiguous result.
    Malformed(String),
    /// A `resultType` that nobody knows (MCP 2026-07-28: the response is invalid).
    UnknownResultType(String),
    /// A question where none may be asked, or of a kind the harness did not declare or the user does not allow.
    Question(String),
    /// The surface is not the pinned one any more.
    Sealed,
}

/// Proof that a request may leave. Made by [`Gate::clear`] alone.
///
/// ```compile_fail,E0451
/// let forged = mcp_hasp::surface::Cleared { request: unreachable!() };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cleared<'r> {
    request: &'r Request,
}

/// Proof that an answer may be shown. Made by the gate alone.
///
/// ```compile_fail,E0451
/// let forged = mcp_hasp::surface::Admitted { message: unreachable!(), shape: unreachable!() };
/// ```
#[derive(Debug)]
pub struct Admitted {
    message: Message,
    shape: Shape,
}

/// What was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A result that completes the request, in the form of an era.
    Complete(Era),
    /// A result that asks for input first (`resultType: "input_required"`), in modern form.
    InputRequired,
    /// A JSON-RPC error.
    Error,
}

impl Gate {
    /// A gate for what was verified.
    pub fn new(verified: Verified, seal: Arc<Seal>) -> Self {
        if let Some(declared) = &verified.surface().declared {
            seal.pin(declared);
        }
        Gate { verified, seal }
    }

    /// What is served.
    pub fn verified(&self) -> &Verified {
        &self.verified
    }

    /// Whether a request of the harness may leave: nothing speaks against the surface, and what it calls is listed.
    ///
    /// # Errors
    /// Why not.
    pub fn clear<'r>(&self, request: &'r Request) -> Result<Cleared<'r>, Refusal> {
        if self.seal.is_closed() {
            return Err(Refusal::Sealed);
        }
        let params = request.params();
        match request.method() {
            "tools/call" => self.listed(Kind::Tools, params.string("name"))?,
            "prompts/get" => self.listed(Kind::Prompts, params.string("name"))?,
            "completion/complete" => {
                let reference = params.object("ref").ok().flatten().unwrap_or_default();
                match reference.string("type").as_deref() {
                    Some("ref/prompt") => self.listed(Kind::Prompts, reference.string("name"))?,
                    Some("ref/resource") => self.listed(Kind::ResourceTemplates, reference.string("uri"))?,
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(Cleared { request })
    }

    fn listed(&self, kind: Kind, name: Option<Cow<'_, str>>) -> Result<(), Refusal> {
        let name = name.unwrap_or_default();
        if self.verified.observed().list(kind).is_some_and(|list| list.contains(&name)) {
            return Ok(());
        }
        let name = name.into_owned();
        Err(match kind {
            Kind::Prompts => Refusal::UnknownPrompt(name),
            Kind::ResourceTemplates => Refusal::UnknownTemplate(name),
            Kind::Tools | Kind::Skills => Refusal::UnknownTool(name),
        })
    }

    /// Whether a result, in the form of an era, may be shown as the answer to `request`.
    ///
    /// # Errors
    /// Why not. A result that completes its request without the hash that the endpoint declared closes the seal.
    pub fn admit(&self, request: Cleared<'_>, from: Era, message: Message) -> Result<Admitted, Withheld> {
        let shape = shape(request, from, &message.payload())?;
        if let Shape::Complete(_) = shape {
            self.seal.see_complete(request.request.method(), &message);
        }
        self.unsealed(message, shape)
    }

    /// The last step of every admission: nothing has spoken against the surface. What the message carries was seen when it
    /// was read.
    fn unsealed(&self, message: Message, shape: Shape) -> Result<Admitted, Withheld> {
        if self.seal.is_closed() { Err(Withheld::Sealed) } else { Ok(Admitted { message, shape }) }
    }

    /// Whether a JSON-RPC error may be shown.
    ///
    /// # Errors
    /// It is none.
    pub fn admit_error(&self, message: Message) -> Result<Admitted, Withheld> {
        let error = message.payload();
        let code = error.get("code").unwrap_or_default().trim_start_matches('-');
        if code.is_empty()
            || !code.bytes().all(|byte| byte.is_ascii_digit())
            || error.string("message").is_none()
        {
            return Err(Withheld::Malformed("its error has no integer code or no message".into()));
        }
        self.unsealed(message, Shape::Error)
    }

    /// Admits a question of a legacy endpoint that was put into the form of a result here.
    ///
    /// # Errors
    /// The harness cannot answer it.
    pub fn admit_question(&self, request: Cleared<'_>, message: Message) -> Result<Admitted, Withheld> {
        questions(request, &message.payload())?;
        self.unsealed(message, Shape::InputRequired)
    }
}

fn shape(request: Cleared<'_>, from: Era, result: &Object<'_>) -> Result<Shape, Withheld> {
    if from == Era::Legacy {
        return Ok(Shape::Complete(Era::Legacy));
    }
    match result.get("resultType") {
        None | Some(r#""complete""#) => Ok(Shape::Complete(Era::Modern)),
        Some(text) => match json::decode_string(text).as_deref() {
            Some("complete") => Ok(Shape::Complete(Era::Modern)),
            Some("input_required") => questions(request, result).map(|()| Shape::InputRequired),
            _ => Err(Withheld::UnknownResultType(crate::report::visible(text, 60))),
        },
    }
}

/// An `input_required` result may ask, of this request, what the harness declared and the user allows.
fn questions(request: Cleared<'_>, result: &Object<'_>) -> Result<(), Withheld> {
    let request = request.request;
    if !method::may_ask(request.method()) {
        return Err(Withheld::Question(format!(
            "{} may not ask for input",
            crate::report::visible(request.method(), 60)
        )));
    }
    let asked = result
        .object("inputRequests")
        .map_err(|wrong| Withheld::Malformed(format!("inputRequests: {wrong:?}")))?;
    if asked.is_none() && result.get("requestState").is_none() {
        return Err(Withheld::Question("asks for input without saying for which".into()));
    }
    for member in asked.unwrap_or_default().members() {
        let entry = Object::read(member.value)
            .map_err(|wrong| Withheld::Malformed(format!("inputRequests: {wrong:?}")))?;
        let method = entry.string("method").unwrap_or_default();
        let question = Question { method: &method, params: entry.get("params").unwrap_or("{}") };
        if !request.client.client().can_answer(&question) {
            let method = crate::report::visible(&method, 60);
            return Err(Withheld::Question(format!("{method} was not offered to the endpoint")));
        }
    }
    Ok(())
}

impl<'r> Cleared<'r> {
    /// The request that may leave.
    pub fn request(self) -> &'r Request {
        self.request
    }
}

impl Admitted {
    /// What it is.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The members of the result or error.
    pub fn payload(&self) -> Object<'_> {
        self.message.payload()
    }

    /// The bytes of the result or error, as the endpoint sent them.
    pub fn into_bytes(self) -> Bytes {
        self.message.into_payload()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::surface::{List, Observed, Pin};
    use crate::wire::{Declared, parse};

    /// A gate for an endpoint that declares the hash `a`.
    fn gate() -> Gate {
        let mut list = List::new(Kind::Tools);
        let page = r#"{"tools":[{"name":"t"}],"_meta":{"surfaceHash":"a"}}"#;
        list.add_page(Bytes::from_static(page.as_bytes())).unwrap();
        let observed = Observed::new(Era::Modern, Bytes::from_static(b"{}"), [list]);
        Gate::new(Pin::default().verify(observed).unwrap(), Arc::default())
    }

    fn request(method: &str, params: &str) -> Request {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        Request::new(parse(text.into_bytes()).unwrap(), Arc::new(Declared::default()), None)
    }

    fn answer(member: &str) -> Message {
        parse(format!(r#"{{"jsonrpc":"2.0","id":1,{member}}}"#).into_bytes()).unwrap()
    }

    #[test]
    fn only_what_is_listed_may_leave() {
        let gate = gate();
        assert!(gate.clear(&request("tools/call", r#"{"name":"t"}"#)).is_ok());
        assert!(gate.clear(&request("resources/read", r#"{"uri":"x"}"#)).is_ok());
        for (method, params, why) in [
            ("tools/call", r#"{"name":"u"}"#, Refusal::UnknownTool("u".into())),
            ("tools/call", "{}", Refusal::UnknownTool(String::new())),
            ("prompts/get", r#"{"name":"t"}"#, Refusal::UnknownPrompt("t".into())),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/resource","uri":"u"}}"#,
                Refusal::UnknownTemplate("u".into()),
            ),
        ] {
            assert_eq!(gate.clear(&request(method, params)).unwrap_err(), why, "{method}");
        }
    }

    #[test]
    fn a_result_without_the_hash_is_not_shown_and_from_then_on_nothing_is() {
        let gate = gate();
        let call = request("tools/call", r#"{"name":"t"}"#);
        let cleared = gate.clear(&call).unwrap();
        let good = || answer(r#""result":{"_meta":{"surfaceHash":"a"}}"#);
        let error = || answer(r#""error":{"code":-1,"message":"no"}"#);
        assert!(gate.admit(cleared, Era::Modern, good()).is_ok());
        assert!(gate.admit_error(error()).is_ok(), "an error may lack it");
        let without = answer(r#""result":{"content":[]}"#);
        assert_eq!(gate.admit(cleared, Era::Modern, without).unwrap_err(), Withheld::Sealed);
        assert_eq!(gate.admit(cleared, Era::Modern, good()).unwrap_err(), Withheld::Sealed);
        assert_eq!(gate.admit_error(error()).unwrap_err(), Withheld::Sealed);
        assert_eq!(gate.clear(&call).unwrap_err(), Refusal::Sealed);
    }
}
