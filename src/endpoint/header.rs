//! Header values that mirror parts of a request (MCP 2026-07-28 "Streamable HTTP", SEP-2243).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HeaderValue;

/// The value as it is where that is safe, else `=?base64?…?=`.
pub(super) fn mirrored(text: &str) -> HeaderValue {
    let plain = !needs_wrapping(text);
    let value = if plain {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text)))
    };
    // Both forms are visible ASCII, which a header value always takes.
    value.unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn needs_wrapping(text: &str) -> bool {
    let edge_blank = text.starts_with(' ') || text.ends_with(' ');
    let sentinel = text.starts_with("=?base64?") && text.ends_with("?=");
    // A tab may stand plain by one text and must be wrapped by the other; wrapped satisfies both.
    edge_blank || sentinel || text.is_empty() || !text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_wrapped_only_where_they_must_be() {
        for (text, header) in [
            ("move_unit", "move_unit"),
            ("a b", "a b"),
            ("café", "=?base64?Y2Fmw6k=?="),
            (" x", "=?base64?IHg=?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
            ("x\r\nY: z", "=?base64?eA0KWTogeg==?="),
            ("", "=?base64??="),
        ] {
            assert_eq!(mirrored(text).to_str().unwrap(), header, "{text:?}");
        }
    }
}
