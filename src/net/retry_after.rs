//! How long an answer asks to be left alone.

use std::time::SystemTime;

use http::header::{HeaderMap, RETRY_AFTER};

/// Seconds to wait, as `Retry-After` has them: a number or a date (RFC 9110 §10.2.3).
pub fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).map_or(0, |wait| wait.as_secs() + 1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of(text: &str) -> Option<u64> {
        retry_after(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]))
    }

    #[test]
    fn a_number_or_a_date() {
        assert_eq!(retry_after(&HeaderMap::new()), None);
        assert_eq!(of("120"), Some(120));
        assert_eq!(of("soon"), None);
        assert_eq!(of("-1"), None);
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
        let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(600));
        assert!((590..=601).contains(&of(&later).unwrap()));
    }
}
