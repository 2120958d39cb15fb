//! The methods we know, and what each may do.

/// Methods that may be sent again when it is unknown whether the endpoint saw them: they only read.
/// A `tools/call` is never among them.
pub fn repeatable(method: &str) -> bool {
    cacheable(method) || matches!(method, "resources/directory/read" | "subscriptions/listen")
}

/// Methods whose modern result carries `ttlMs` and `cacheScope` (MCP 2026-07-28 "Caching"): what they read can be kept.
pub fn cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "skills/list"
            | "skills/get"
    )
}

/// The member of `params` that `Mcp-Name` mirrors (MCP 2026-07-28 "Streamable HTTP", SEP-2243).
pub fn name_header_source(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// Methods that may be answered by a question to the user (`resultType: "input_required"`, SEP-2322).
pub fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// The severities of `notifications/message`, least first (RFC 5424 §6.2.1, MCP "Logging").
const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Where a log level stands among the others; `None` for an unknown one.
pub fn log_rank(level: &str) -> Option<usize> {
    LOG_LEVELS.iter().position(|known| *known == level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_call_is_never_repeatable() {
        assert!(!repeatable("tools/call"));
        assert!(!repeatable("anything/else"));
        assert!(repeatable("tools/list"));
    }
}
