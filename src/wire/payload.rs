//! Outgoing text as a few slices, so that a large result is written without being copied.

use std::ops::Range;

use bytes::Bytes;

/// A text in pieces, in order.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    pieces: Vec<Bytes>,
}

impl Payload {
    /// An empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.pieces.push(piece);
        }
    }

    /// Adds all pieces of another text.
    pub fn append(&mut self, other: Payload) {
        self.pieces.extend(other.pieces);
    }

    /// The pieces in order.
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// How many bytes there are in all.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The text in one piece.
    pub fn into_vec(self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        for piece in &self.pieces {
            all.extend_from_slice(piece);
        }
        all
    }
}

impl<T: Into<Bytes>> From<T> for Payload {
    fn from(piece: T) -> Self {
        let mut payload = Payload::new();
        payload.push(piece);
        payload
    }
}

/// Cuts and insertions in a text. What is not named stays as its own bytes.
#[derive(Debug, Default)]
pub struct Splice {
    edits: Vec<(Range<usize>, Payload)>,
}

impl Splice {
    /// No change yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `with` in the place of `range` (empty for an insertion). Ranges must not overlap.
    pub fn replace(&mut self, range: Range<usize>, with: impl Into<Payload>) {
        self.edits.push((range, with.into()));
    }

    /// The text with every change made.
    pub fn apply(mut self, base: &Bytes) -> Payload {
        if self.edits.is_empty() {
            return base.clone().into();
        }
        self.edits.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = Payload::new();
        let mut at = 0;
        for (range, with) in self.edits {
            let start = range.start.clamp(at, base.len());
            out.push(base.slice(at..start));
            out.append(with);
            at = range.end.clamp(start, base.len());
        }
        out.push(base.slice(at..));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_made_in_place_and_nothing_else_moves() {
        let base = Bytes::from_static(b"0123456789");
        let mut splice = Splice::new();
        splice.replace(8..10, Payload::new());
        splice.replace(0..1, "a".to_owned());
        splice.replace(4..4, "-".to_owned());
        assert_eq!(splice.apply(&base).into_vec(), b"a123-4567");
        assert_eq!(Splice::new().apply(&base).into_vec(), b"0123456789");
    }
}
