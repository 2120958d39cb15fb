//! Skills (SEP-2640): entries from the pin, and each file once from the endpoint, checked, then from the copy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::refusal::{self, error};
use super::route::not_found;
use super::{Caller, Relay};
use crate::endpoint::Trouble;
use crate::report::quoted;
use crate::surface::gate::Shape;
use crate::surface::skill::{Found, ListedFile, Lookup};
use crate::surface::{Kind, VerifiedFile};
use crate::wire::code::{INTERNAL, INVALID_PARAMS};
use crate::wire::json::quote;
use crate::wire::{Client, Declared, Era, Message, Object, Payload, Request, meta, parse};

/// Copies that are kept, in bytes of their results. What comes on top is checked and shown, and fetched again.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// How long a fetch may take: everybody who asks for the file waits for the same one.
const FETCH_LIMIT: Duration = Duration::from_secs(120);

/// What became of a fetch: the file, or the text of an error.
type Fetched = Result<Arc<VerifiedFile>, Bytes>;

/// The files that were fetched, or are being fetched, by their listed URIs. They belong to the pinned surface: the
/// endpoint may be opened again meanwhile.
#[derive(Debug, Default)]
pub(super) struct SkillFiles {
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    files: HashMap<String, (ListedFile, Held)>,
    bytes: usize,
}

#[derive(Debug)]
enum Held {
    Kept(Arc<VerifiedFile>),
    Underway(watch::Receiver<Option<Fetched>>),
}

impl Relay {
    /// `skills/get`: the listed entry, never the endpoint's word of now.
    pub(super) async fn skill(&self, message: &Message, caller: &Caller) -> Result<Payload, String> {
        let open = self.opened().await?;
        let Some(skills) = open.served().skills() else { return Err(not_found("skills/get")) };
        let params = message.payload();
        let uri = params.string("uri").ok_or_else(no_uri)?;
        let listed = match skills.find(&uri) {
            Found::Skill(listed) => open.served().list(Kind::Skills).and_then(|list| list.item(listed)),
            Found::Refused(why) => return Err(skill_refused(&uri, why)),
            Found::Unknown => None,
        };
        let Some(entry) = listed else {
            let message = format!("skill {} is not in the list read at start; nothing was sent", shown(&uri));
            return Err(error(INVALID_PARAMS, &message, Some(r#"{"reason":"unknown_skill"}"#)));
        };
        Ok(match caller.era() {
            Era::Modern => {
                format!(r#"{{"resultType":"complete","skill":{entry},"ttlMs":0,"cacheScope":"private"}}"#)
            }
            Era::Legacy => format!(r#"{{"skill":{entry}}}"#),
        }
        .into())
    }

    /// `resources/read`, where it is about a file of a skill. `None`: it is not, and may be forwarded.
    pub(super) async fn skill_file(
        self: &Arc<Self>,
        message: &Message,
        caller: &Caller,
    ) -> Option<Result<Payload, Payload>> {
        let open = match self.ready().await {
            Ok(open) => open,
            Err(trouble) => return Some(Err(refusal::trouble(&trouble, "opening").into())),
        };
        let skills = open.served().skills()?;
        // What cannot be read here might be read there as the URI of a skill's file.
        let Some(uri) = message.payload().string("uri").map(std::borrow::Cow::into_owned) else {
            return Some(Err(no_uri().into()));
        };
        let file = match skills.lookup(&uri) {
            Lookup::NotASkillFile => return None,
            Lookup::File(file) => file.clone(),
            Lookup::Unlisted { skill } => return Some(Err(unlisted(&uri, skill).into())),
            Lookup::RefusedSkill { skill, why } => return Some(Err(skill_refused(skill, why).into())),
        };
        drop(open);
        Some(match self.copy_of(file).await {
            Ok(file) => Ok(in_form_of(&file, caller.era())),
            Err(error) => Err(error.into()),
        })
    }

    /// The kept copy, or the outcome of the one fetch that everybody who asks meanwhile waits for.
    async fn copy_of(self: &Arc<Self>, file: ListedFile) -> Fetched {
        let mut outcome = match self.skills.take_or_begin(&file) {
            Begun::Kept(file) => return Ok(file),
            Begun::Underway(outcome) => outcome,
            Begun::New(done, outcome) => {
                let relay = Arc::clone(self);
                // A task of its own: whoever asked first may give up, the others wait on.
                self.spawn(Box::pin(async move {
                    let fetched = tokio::time::timeout(FETCH_LIMIT, relay.fetch(&file)).await;
                    let fetched = fetched.unwrap_or_else(|_| Err(timed_out()));
                    relay.skills.settle(file, &fetched);
                    done.send_replace(Some(fetched));
                }));
                outcome
            }
        };
        let fetched = outcome.wait_for(Option::is_some).await.ok().and_then(|fetched| fetched.clone());
        // The task ends unfinished only with the program.
        fetched.unwrap_or_else(|| Err(refusal::own("leaving", "mcp-hasp is ending").into()))
    }

    /// Reads a file at the endpoint and checks it.
    async fn fetch(self: &Arc<Self>, file: &ListedFile) -> Fetched {
        let Some(request) = read_request(&file.uri) else { return Err(no_uri().into()) };
        // For nobody in particular: no progress, no log messages, no questions.
        let answer = self.cross(&request, Era::Modern).await.map_err(Bytes::from)?;
        if answer.shape() == Shape::Error {
            return Err(answer.into_bytes());
        }
        VerifiedFile::check(file, answer).map(Arc::new).map_err(|why| {
            let uri = shown(&file.uri);
            self.report.warning(format!("skill file {uri} is refused: {why}; its operator must correct it"));
            let message =
                format!("skill file {uri} is refused: {why}; the endpoint's operator must correct it");
            error(INTERNAL, &message, Some(r#"{"reason":"skill_file_refused"}"#)).into()
        })
    }
}

enum Begun {
    Kept(Arc<VerifiedFile>),
    Underway(watch::Receiver<Option<Fetched>>),
    New(watch::Sender<Option<Fetched>>, watch::Receiver<Option<Fetched>>),
}

impl SkillFiles {
    /// What there is of a file. Where there is nothing, the caller has to fetch it.
    fn take_or_begin(&self, file: &ListedFile) -> Begun {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        // A copy counts for the very entry that it was checked against.
        match shelf.files.get(&file.uri).filter(|(known, _)| known == file) {
            Some((_, Held::Kept(copy))) => return Begun::Kept(Arc::clone(copy)),
            Some((_, Held::Underway(outcome))) => return Begun::Underway(outcome.clone()),
            None => {}
        }
        let (done, outcome) = watch::channel(None);
        shelf.put(file.clone(), Held::Underway(outcome.clone()));
        Begun::New(done, outcome)
    }

    /// Keeps a verified file if there is room, and forgets a failure, so that the next one to ask tries again.
    fn settle(&self, file: ListedFile, fetched: &Fetched) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        match fetched {
            Ok(copy) if shelf.bytes.saturating_add(copy.result().len()) <= KEPT_BYTES => {
                shelf.bytes += copy.result().len();
                shelf.put(file, Held::Kept(Arc::clone(copy)));
            }
            _ => drop(shelf.files.remove(&file.uri)),
        }
    }
}

impl Shelf {
    fn put(&mut self, file: ListedFile, held: Held) {
        let replaced = self.files.insert(file.uri.clone(), (file, held));
        if let Some((_, Held::Kept(copy))) = replaced {
            self.bytes -= copy.result().len();
        }
    }
}

/// A read of our own, declaring that skills are understood and nothing that could be asked of a user.
fn read_request(uri: &str) -> Option<Request> {
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"resources/read","params":{{"uri":{}}}}}"#, quote(uri));
    let client = Client { skills: Some("{}".into()), ..Client::default() };
    Some(Request::new(parse(text.into_bytes()).ok()?, Arc::new(Declared::new(client)), None))
}

fn in_form_of(file: &VerifiedFile, era: Era) -> Payload {
    if file.era() == era {
        return file.result().clone().into();
    }
    let text = std::str::from_utf8(file.result()).unwrap_or("{}");
    let result = Object::read_checked(text).unwrap_or_default();
    meta::translate_result("resources/read", file.era(), era, &result).apply(file.result())
}

fn timed_out() -> Bytes {
    let trouble = Trouble::TimedOut { seconds: FETCH_LIMIT.as_secs() };
    refusal::trouble(&trouble, "resources/read").into()
}

fn shown(uri: &str) -> String {
    quoted(uri, 120)
}

fn no_uri() -> String {
    error(INVALID_PARAMS, "params.uri must be a string", None)
}

fn skill_refused(skill: &str, why: &str) -> String {
    let message =
        format!("skill {} is refused: {why}; the endpoint's operator must correct it", shown(skill));
    error(INVALID_PARAMS, &message, Some(r#"{"reason":"skill_refused"}"#))
}

fn unlisted(uri: &str, skill: Option<&str>) -> String {
    let of = match skill {
        Some(skill) => format!("is not listed by the skill {}", shown(skill)),
        None => "is not listed by any skill".to_owned(),
    };
    let message = format!("{} {of}; nothing was sent, read only what is listed", shown(uri));
    error(INVALID_PARAMS, &message, Some(r#"{"reason":"unlisted_skill_file"}"#))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::Digest;

    fn file(name: &str) -> ListedFile {
        ListedFile { uri: name.into(), digest: Digest::of(b""), size: 0, front_matter: None }
    }

    fn fetched(bytes: usize) -> Fetched {
        Ok(Arc::new(VerifiedFile::unchecked(vec![b' '; bytes].into())))
    }

    fn is_kept(files: &SkillFiles, file: &ListedFile) -> bool {
        matches!(files.take_or_begin(file), Begun::Kept(_))
    }

    #[test]
    fn copies_are_kept_while_there_is_room() {
        let files = SkillFiles::default();
        for (name, bytes, kept) in [
            ("a", KEPT_BYTES - 10, true),
            ("b", 11, false),
            ("c", 10, true),
            ("d", 1, false),
            ("b", 11, false),
        ] {
            files.settle(file(name), &fetched(bytes));
            assert_eq!(is_kept(&files, &file(name)), kept, "{name}");
        }
    }

    #[test]
    fn a_copy_counts_for_the_entry_that_it_was_checked_against() {
        let files = SkillFiles::default();
        files.settle(file("a"), &fetched(KEPT_BYTES));
        let other = ListedFile { size: 1, ..file("a") };
        assert!(!is_kept(&files, &other), "and makes room for it");
        files.settle(other.clone(), &fetched(KEPT_BYTES));
        assert!(is_kept(&files, &other) && !is_kept(&files, &file("a")));
    }

    #[test]
    fn a_failure_is_forgotten() {
        let files = SkillFiles::default();
        assert!(matches!(files.take_or_begin(&file("a")), Begun::New(..)));
        assert!(matches!(files.take_or_begin(&file("a")), Begun::Underway(_)));
        files.settle(file("a"), &Err(Bytes::new()));
        assert!(matches!(files.take_or_begin(&file("a")), Begun::New(..)));
    }
}
