//! Server-sent events: bytes in, bounded events out (WHATWG HTML §9.2). No I/O.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The `data:` lines, joined by a line feed.
    pub data: Vec<u8>,
    /// The event name; empty means `message`.
    pub name: String,
    /// The last event id after this event, where the stream has one.
    pub last_id: Option<String>,
}

/// An event was larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// The state of one stream.
#[derive(Debug)]
pub struct Reader {
    limit: usize,
    line: Vec<u8>,
    after_cr: bool,
    at_start: bool,
    data: Vec<u8>,
    has_data: bool,
    name: String,
    last_id: Option<String>,
    retry: Option<u64>,
}

impl Reader {
    /// A stream at its beginning, whose lines and events may have `limit` bytes each.
    pub fn new(limit: usize) -> Self {
        Reader {
            limit,
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            data: Vec::new(),
            has_data: false,
            name: String::new(),
            last_id: None,
            retry: None,
        }
    }

    /// The reader of a stream that goes on where this one broke off.
    #[must_use]
    pub fn successor(&self) -> Self {
        Reader { last_id: self.last_id.clone(), retry: self.retry, ..Reader::new(self.limit) }
    }

    /// The last event id seen, for `Last-Event-ID`.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The reconnection time that the server asked for, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Takes bytes until an event is complete. Gives the event, if any, and how many bytes were taken.
    ///
    /// # Errors
    /// A line or an event is larger than the limit.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(Option<Event>, usize), TooLarge> {
        let mut taken = 0;
        while let Some(mut rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
                taken += 1;
                rest = rest.get(1..).unwrap_or_default();
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                taken += rest.len();
                if self.line.len() > self.limit.saturating_add(16) {
                    return Err(TooLarge);
                }
                break;
            };
            self.after_cr = rest.get(end) == Some(&b'\r');
            self.line.extend_from_slice(rest.get(..end).unwrap_or_default());
            taken += end + 1;
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.line(line)? {
                return Ok((Some(event), taken));
            }
        }
        Ok((None, taken))
    }

    fn line(&mut self, mut line: Vec<u8>) -> Result<Option<Event>, TooLarge> {
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (field, value_at) = match memchr::memchr(b':', &line) {
            Some(0) => return Ok(None),
            Some(colon) => (colon, colon + 1 + usize::from(line.get(colon + 1) == Some(&b' '))),
            None => (line.len(), line.len()),
        };
        let value = line.get(value_at..).unwrap_or_default();
        match line.get(..field).unwrap_or_default() {
            b"data" => {
                if self.data.len() + value.len() > self.limit {
                    return Err(TooLarge);
                }
                if self.has_data {
                    self.data.push(b'\n');
                    self.data.extend_from_slice(value);
                } else {
                    // The usual event has one data line: its buffer is kept rather than copied.
                    line.drain(..value_at);
                    self.data = line;
                }
                self.has_data = true;
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // An id with a NUL is ignored (WHATWG HTML §9.2.6); one that cannot be a header value would be of no use.
            b"id" if value.len() <= 1024 && !value.contains(&0) => {
                self.last_id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            }
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        Some(Event { data, name, last_id: self.last_id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(reader: &mut Reader, mut bytes: &[u8]) -> Vec<Event> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (event, taken) = reader.feed(bytes).unwrap();
            bytes = &bytes[taken..];
            all.extend(event);
        }
        all
    }

    fn data(text: &str) -> Vec<String> {
        let all = events(&mut Reader::new(1000), text.as_bytes());
        all.into_iter().map(|event| String::from_utf8(event.data).unwrap()).collect()
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        assert_eq!(data("data: a\n\n"), ["a"]);
        assert_eq!(data("data:a\r\ndata:  b\r\n\r\n"), ["a\n b"]);
        assert_eq!(data("data\n\n"), [""]);
        assert_eq!(data(": hello\nevent: x\n\ndata: y\rdata: z\r\r"), ["y\nz"]);
        assert_eq!(data("unknown: 1\nnocolon\ndata: q\n\n"), ["q"]);
        assert_eq!(data("\u{feff}data: bom\n\n"), ["bom"]);
        assert_eq!(data("data: cut"), [""; 0]);
    }

    #[test]
    fn ids_and_retry_are_kept() {
        let mut reader = Reader::new(100);
        let all = events(&mut reader, b"id: 7\ndata: \n\nretry: 250\nretry: x\n\nid\ndata: b\n\n");
        assert_eq!(all[0].last_id.as_deref(), Some("7"));
        assert_eq!(all[1].last_id.as_deref(), Some(""));
        assert_eq!(reader.retry(), Some(250));
    }

    #[test]
    fn lines_and_events_are_bounded() {
        assert!(Reader::new(10).feed(b"data: 0123456789\n\n").unwrap().0.is_some());
        assert!(Reader::new(10).feed(b"data: 01234567890\n\n").is_err());
        assert!(Reader::new(10).feed(&[b'x'; 40]).is_err());
        assert!(Reader::new(10).feed(b"data: 012345\ndata: 6789a\n\n").is_err());
    }

    proptest! {
        #[test]
        fn the_cut_of_the_chunks_does_not_matter(text in "(data: ?[a-z]{0,4}(\r\n|\n|\r)|id: [0-9](\r\n|\n|\r)|:x\n|\r\n|\n|\r){0,12}", cut in 1_usize..7) {
            let whole = events(&mut Reader::new(1000), text.as_bytes());
            let mut reader = Reader::new(1000);
            let mut parts = Vec::new();
            for chunk in text.as_bytes().chunks(cut) {
                parts.extend(events(&mut reader, chunk));
            }
            prop_assert_eq!(whole, parts);
        }
    }
}
