//! JSON-RPC 2.0 error codes (§5.1) and those of MCP 2026-07-28 that this program gives or knows.

/// The line is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but no request.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit.
pub const INVALID_PARAMS: i64 = -32602;
/// Everything that is neither the harness's fault nor the endpoint's own JSON-RPC error.
pub const INTERNAL: i64 = -32603;
/// The client cannot do what the request needs.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// A revision that is not spoken.
pub const UNSUPPORTED_VERSION: i64 = -32022;
