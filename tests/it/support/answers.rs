//! What the endpoint answers by itself: a tiny surface, in both eras.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{
    Era, MODERN,
    record::Recorded,
    reply::{Reply, Script},
    skills::Offered,
};

/// Everything of the endpoint that a client can list. All members are raw JSON text.
#[derive(Clone)]
pub struct Surface {
    /// The era that results are written for.
    pub era: Era,
    /// The revision that `initialize` is answered with.
    pub version: String,
    /// Pages of `tools/list`, each an array.
    pub tool_pages: Vec<String>,
    /// The array of `resources/list`.
    pub resources: String,
    /// The array of `resources/templates/list`.
    pub templates: String,
    /// The array of `prompts/list`.
    pub prompts: String,
    /// The server's capabilities.
    pub capabilities: String,
    /// The instructions, a JSON string; none when absent.
    pub instructions: Option<String>,
    /// Name and version of the server.
    pub server_info: String,
    /// Members of `_meta` on every result, without the braces.
    pub meta: String,
    /// The skills; the endpoint knows nothing of skills when absent.
    pub skills: Option<Offered>,
    /// What a listen stream acknowledges; what was asked for when absent.
    pub listen_filter: Option<String>,
}

impl Surface {
    /// The default surface.
    pub fn new(era: Era) -> Self {
        Self {
            era,
            version: super::LEGACY.to_owned(),
            tool_pages: vec![TOOLS.to_owned()],
            resources: r#"[{"uri":"memo://one","name":"one","mimeType":"text/plain"}]"#.to_owned(),
            templates: r#"[{"uriTemplate":"memo://{name}","name":"memo"}]"#.to_owned(),
            prompts: r#"[{"name":"greet","description":"Say hello.","arguments":[{"name":"who"}]}]"#
                .to_owned(),
            capabilities: CAPABILITIES.to_owned(),
            instructions: Some(r#""Be brief.""#.to_owned()),
            server_info: r#"{"name":"fake","version":"1.0.0"}"#.to_owned(),
            meta: String::new(),
            skills: None,
            listen_filter: None,
        }
    }

    /// The answer of a server that has only this surface; `None` for a method it does not know.
    pub fn answer(&self, request: &Recorded, wake: &Arc<Notify>) -> Option<Reply> {
        let reply = match request.method() {
            "server/discover" if self.era == Era::Modern => self.discover(),
            "server/discover" => {
                Reply::error_code(-32000, "Bad Request: Server not initialized").with_status(400)
            }
            "initialize" if self.era == Era::Legacy => self.initialize(),
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"
                if self.era == Era::Legacy =>
            {
                self.complete(String::new())
            }
            "tools/list" => self.tools_page(request)?,
            "resources/list" => self.cached(format!(r#""resources":{}"#, self.resources)),
            "resources/templates/list" => self.cached(format!(r#""resourceTemplates":{}"#, self.templates)),
            "prompts/list" => self.cached(format!(r#""prompts":{}"#, self.prompts)),
            "skills/list" => self.cached(format!(r#""skills":{}"#, self.skills.as_ref()?.list())),
            "skills/get" => match self.skills.as_ref()?.entry(request.subject()) {
                Some(entry) => self.cached(format!(r#""skill":{entry}"#)),
                None => Reply::error_code(-32602, "unknown skill"),
            },
            "prompts/get" => self.prompt(request),
            "resources/read" => self.resource(request),
            "tools/call" => self.tool(request, wake),
            "completion/complete" => self.complete(r#""completion":{"values":["completed"]}"#.to_owned()),
            _ => return None,
        };
        Some(reply)
    }

    /// The acknowledgement of a listen request: its `params.notifications`.
    pub fn acknowledged(&self, request: &Recorded) -> String {
        self.listen_filter.clone().unwrap_or_else(|| request.param("notifications").to_string())
    }

    fn discover(&self) -> Reply {
        let instructions = self.instructions_member();
        self.cached(format!(
            r#""supportedVersions":["{MODERN}"],"capabilities":{}{instructions}"#,
            self.capabilities
        ))
    }

    fn initialize(&self) -> Reply {
        self.complete(format!(
            r#""protocolVersion":"{}","capabilities":{},"serverInfo":{}{}"#,
            self.version,
            self.capabilities,
            self.server_info,
            self.instructions_member()
        ))
    }

    fn instructions_member(&self) -> String {
        self.instructions.as_ref().map_or_else(String::new, |text| format!(r#","instructions":{text}"#))
    }

    fn tools_page(&self, request: &Recorded) -> Option<Reply> {
        let page = match request.param("cursor").as_str() {
            None => 0,
            Some(cursor) => cursor.strip_prefix("page-").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX),
        };
        let Some(tools) = self.tool_pages.get(page) else {
            return Some(Reply::error_code(-32602, "bad cursor"));
        };
        let next = page + 1;
        let more = if next < self.tool_pages.len() {
            format!(r#","nextCursor":"page-{next}""#)
        } else {
            String::new()
        };
        Some(self.cached(format!(r#""tools":{tools}{more}"#)))
    }

    fn tool(&self, request: &Recorded, wake: &Arc<Notify>) -> Reply {
        match request.subject() {
            "echo" => self.text(request.param("arguments")["text"].as_str().unwrap_or_default()),
            "sleep" => self.sleep(request, wake),
            "ask" if self.era == Era::Legacy => self.ask_by_request(),
            "ask" => self.ask_by_result(request),
            _ => Reply::error_code(-32602, "unknown tool"),
        }
    }

    /// Progress at once where asked for, the answer when the test says `wake`.
    fn sleep(&self, request: &Recorded, wake: &Arc<Notify>) -> Reply {
        let token = &request.param("_meta")["progressToken"];
        let script = if token.is_null() {
            Script::new()
        } else {
            let params = format!(r#"{{"progressToken":{token},"progress":1,"total":2,"message":"asleep"}}"#);
            Script::new().notification("notifications/progress", &params)
        };
        Reply::sse(script.wait(wake).result(self.text_result("awake")))
    }

    fn ask_by_request(&self) -> Reply {
        let surface = self.clone();
        let script = Script::new().request(r#""ask-1""#, "elicitation/create", QUESTION);
        Reply::sse(script.posted(r#""ask-1""#, move |response| {
            Script::new().result(surface.text_result(&response["result"].to_string()))
        }))
    }

    fn ask_by_result(&self, request: &Recorded) -> Reply {
        let answers = request.param("inputResponses");
        if answers.is_null() {
            return Reply::result(format!(
                r#"{{"resultType":"input_required","requestState":"state-1","inputRequests":{{"ask-1":{{"method":"elicitation/create","params":{QUESTION}}}}}}}"#
            ));
        }
        if request.param("requestState") != "state-1" {
            return Reply::error_code(-32602, "not the requestState that was given");
        }
        self.text(&answers["ask-1"].to_string())
    }

    fn prompt(&self, request: &Recorded) -> Reply {
        if request.subject() != "greet" {
            return Reply::error_code(-32602, "unknown prompt");
        }
        self.complete(
            r#""messages":[{"role":"user","content":{"type":"text","text":"Say hello."}}]"#.to_owned(),
        )
    }

    fn resource(&self, request: &Recorded) -> Reply {
        let uri = request.param("uri");
        if request.subject().starts_with("memo://") {
            return self
                .cached(format!(r#""contents":[{{"uri":{uri},"mimeType":"text/plain","text":"a memo"}}]"#));
        }
        if let Some(content) = self.skills.as_ref().and_then(|skills| skills.content(request.subject())) {
            return self.cached(format!(r#""contents":[{content}]"#));
        }
        let code = if self.era == Era::Modern { -32602 } else { -32002 };
        Reply::error_code(code, "unknown resource")
    }

    fn text(&self, text: &str) -> Reply {
        Reply::result(self.text_result(text))
    }

    fn text_result(&self, text: &str) -> String {
        let text = serde_json::Value::from(text);
        self.members(format!(r#""content":[{{"type":"text","text":{text}}}]"#), false)
    }

    fn complete(&self, members: String) -> Reply {
        Reply::result(self.members(members, false))
    }

    fn cached(&self, members: String) -> Reply {
        Reply::result(self.members(members, true))
    }

    /// A result object of this era, with those members.
    fn members(&self, members: String, cached: bool) -> String {
        let modern = self.era == Era::Modern;
        let mut parts = Vec::new();
        if modern {
            parts.push(r#""resultType":"complete""#.to_owned());
        }
        if !members.is_empty() {
            parts.push(members);
        }
        if modern && cached {
            parts.push(r#""ttlMs":0,"cacheScope":"private""#.to_owned());
        }
        let mut meta = Vec::new();
        if modern {
            meta.push(format!(r#""io.modelcontextprotocol/serverInfo":{}"#, self.server_info));
        }
        if !self.meta.is_empty() {
            meta.push(self.meta.clone());
        }
        if !meta.is_empty() {
            parts.push(format!(r#""_meta":{{{}}}"#, meta.join(",")));
        }
        format!("{{{}}}", parts.join(","))
    }
}

const TOOLS: &str = concat!(
    r#"[{"name":"echo","description":"Return the text.","inputSchema":{"type":"object","#,
    r#""properties":{"text":{"type":"string"}},"required":["text"]}},"#,
    r#"{"name":"sleep","description":"Wait until woken.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"ask","description":"Ask the user.","inputSchema":{"type":"object"}}]"#
);

const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true}}"#;

const QUESTION: &str = r#"{"mode":"form","message":"May I?","requestedSchema":{"type":"object","properties":{"allow":{"type":"boolean"}},"required":["allow"]}}"#;
