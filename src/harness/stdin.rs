//! Lines in: one message a line, bounded (MCP "stdio"). Knows nothing of what they mean.

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::wire::skim::Skim;

/// A line from the harness.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Its bytes, without the line end.
    Text(Vec<u8>),
    /// It was longer than the limit, and was skipped to its end. With the id of the message, where it has one.
    TooLong(Option<String>),
}

/// Reads lines.
#[derive(Debug)]
pub struct Stdin<R> {
    input: R,
    buffer: BytesMut,
    searched: usize,
    limit: usize,
    skipping: Option<Skim>,
    at_start: bool,
}

/// How much is asked of the pipe at once.
const CHUNK: usize = 64 * 1024;

impl<R: AsyncRead + Unpin> Stdin<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(input: R, limit: usize) -> Self {
        Stdin { input, buffer: BytesMut::new(), searched: 0, limit, skipping: None, at_start: true }
    }

    /// The next line that is not blank; `None` when the harness has closed its end. Safe to cancel.
    pub async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.buffered() {
                return Some(line);
            }
            if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
                self.buffer.reserve(CHUNK);
            }
            match self.input.read_buf(&mut self.buffer).await {
                // What stands behind the last line end is no message: its end never came.
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    fn buffered(&mut self) -> Option<Line> {
        loop {
            let fresh = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(found) = memchr::memchr(b'\n', fresh) else {
                self.searched = self.buffer.len();
                if self.skipping.is_some() || self.searched > self.limit {
                    self.skipping.get_or_insert_default().feed(&self.buffer);
                    self.buffer.clear();
                    self.searched = 0;
                }
                return None;
            };
            let line = self.buffer.split_to(self.searched + found + 1);
            self.searched = 0;
            if self.skipping.is_some() || line.len() > self.limit.saturating_add(1) {
                let mut skim = self.skipping.take().unwrap_or_default();
                skim.feed(&line);
                return Some(Line::TooLong(skim.into_id()));
            }
            let mut text = line.as_ref().trim_ascii();
            if std::mem::take(&mut self.at_start) {
                text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
            }
            if !text.is_empty() {
                return Some(Line::Text(text.to_vec()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<Line> {
        let mut stdin = Stdin::new(input, limit);
        let mut all = Vec::new();
        while let Some(line) = stdin.next().await {
            all.push(line);
        }
        all
    }

    fn text(bytes: &[u8]) -> Line {
        Line::Text(bytes.to_vec())
    }

    #[tokio::test]
    async fn line_ends_blank_lines_and_a_byte_order_mark_are_no_part_of_a_message() {
        let input = b"\xEF\xBB\xBF{1}\r\n\n  \r\n{2}\n{cut";
        assert_eq!(lines(input, 100).await, [text(b"{1}"), text(b"{2}")]);
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_is_skipped_to_its_end() {
        assert_eq!(lines(b"1234\n12345\n1\n", 4).await, [text(b"1234"), Line::TooLong(None), text(b"1")]);
        let long = [b"{\"x\":\"".to_vec(), vec![b'x'; 300_000], b"\",\"id\":7}\nok\n".to_vec()].concat();
        assert_eq!(lines(&long, 10).await, [Line::TooLong(Some("7".into())), text(b"ok")]);
    }
}
