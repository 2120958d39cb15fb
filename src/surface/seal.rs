//! The seal: closed by the first sign that the surface is not the pinned one, and never opened again.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use super::declared::{DeclaredHash, Departure};
use super::pin::{Mismatch, Sign};
use crate::wire::json::NotReadable;
use crate::wire::{Message, Object};

/// Open as long as nothing speaks against the surface. Whoever sends to the endpoint asks it first, and every message of
/// the endpoint is shown to it.
#[derive(Debug, Default)]
pub struct Seal {
    declared: OnceLock<DeclaredHash>,
    why: OnceLock<Box<Mismatch>>,
    closed: CancellationToken,
}

impl Seal {
    /// From now on every message that carries a declared hash must carry this one.
    pub(super) fn pin(&self, declared: &DeclaredHash) {
        let _ = self.declared.set(declared.clone());
    }

    /// Closes it. The first reason stays.
    pub fn close(&self, why: Mismatch) {
        let _ = self.why.set(Box::new(why));
        self.closed.cancel();
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Resolves when it is closed.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Why it was closed.
    pub fn why(&self) -> Option<&Mismatch> {
        self.why.get().map(Box::as_ref)
    }

    /// Looks at a message of the endpoint: a hash that is there and is not the pinned one closes the seal, wherever it
    /// stands: in the `_meta` of parameters, of a result, of a question in a result, of an error, in an error's `data`.
    /// `with` is the method that the message belongs to.
    pub fn see(&self, with: &str, message: &Message) {
        let Some(declared) = self.declared.get() else { return };
        let payload = message.payload();
        let seen = match message.error() {
            None => declared.check_if_there(&message.meta()).and_then(|()| see_questions(declared, &payload)),
            Some(_) => see_member(declared, &payload, "_meta")
                .and_then(|()| see_member(declared, &payload, "data"))
                .and_then(|()| match payload.object("data") {
                    Ok(Some(data)) => see_member(declared, &data, "_meta"),
                    _ => Ok(()),
                }),
        };
        if let Err(departure) = seen {
            self.depart(with, departure);
        }
    }

    /// Looks at a result that completes a request: it must carry the pinned hash.
    pub(super) fn see_complete(&self, method: &str, message: &Message) {
        let checked = self.declared.get().map_or(Ok(()), |declared| declared.check(&message.meta()));
        if let Err(departure) = checked {
            self.depart(method, departure);
        }
    }

    fn depart(&self, method: &str, departure: Departure) {
        if let Some(expected) = self.declared.get().cloned() {
            self.close(Sign::Message { method: method.to_owned(), expected, departure }.alone());
        }
    }
}

/// A member that may hold a hash. One that two readers could read in two ways counts as another hash.
fn see_member(declared: &DeclaredHash, of: &Object<'_>, key: &str) -> Result<(), Departure> {
    match of.object(key) {
        Ok(Some(member)) => declared.check_if_there(&member),
        Err(NotReadable::Duplicate(_)) => {
            Err(Departure::Differs { found: of.get(key).unwrap_or_default().to_owned() })
        }
        Ok(None) | Err(NotReadable::Syntax) => Ok(()),
    }
}

/// The questions of a result that asks for input: what a legacy endpoint puts into parameters of their own.
fn see_questions(declared: &DeclaredHash, result: &Object<'_>) -> Result<(), Departure> {
    let Ok(Some(questions)) = result.object("inputRequests") else { return Ok(()) };
    questions.members().try_for_each(|question| {
        let Ok(question) = Object::read(question.value) else { return Ok(()) };
        match question.object("params") {
            Ok(Some(params)) => see_member(declared, &params, "_meta"),
            _ => Ok(()),
        }
    })
}
