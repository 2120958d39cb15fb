//! `oauth.json`: the sign-ins of the user, one for each endpoint URL, shared by all processes.
//!
//! Whoever reads needs no lock, for the file is replaced whole. Whoever writes a record holds the lock of its URL, and for
//! the moment of writing another one: the records of other URLs are in the same file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use zeroize::Zeroizing;

use super::attempt::AttemptLock;
use super::exclusive::Exclusive;
use super::exposed::text_of;
use super::file::{self, FileProblem, Mode};
use super::format::{SignIns, Unreadable, Unusable};
use super::pending::Pending;
use super::place::{sign_in_path, sign_ins_folder};
use super::problem::StoreProblem;
use super::record::{Client, Record};
use super::stamp::Stamp;
use crate::report::Report;
use crate::secret::Secret;

/// Its name within the folder of this program.
const NAME: &str = "oauth.json";
/// Its size at most: hundreds of sign-ins.
const LIMIT: u64 = 8 << 20;
/// How long writing waits for another process that writes. Each takes milliseconds.
const WRITING: Duration = Duration::from_secs(10);

/// The sign-ins that are stored.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    report: Report,
}

impl Store {
    /// In a folder, which is made when something is first stored. What is put right there is said to `report`.
    pub fn new(folder: PathBuf, report: Report) -> Self {
        Store { folder, report }
    }

    /// Where the sign-ins are.
    pub fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    /// The sign-in at an endpoint, whose URL is whole: with its query.
    ///
    /// # Errors
    /// The file cannot be read, may not be, or is of a newer release. A damaged one is set aside instead, and said.
    pub fn read(&self, url: &str) -> Result<Option<Record>, StoreProblem> {
        let get = |sign_ins: &SignIns<'_>| sign_ins.get(url).transpose();
        let found = match self.look(get)? {
            Some(Ok(found)) => found,
            None | Some(Err(Unreadable)) => {
                self.set_aside(Some(url))?;
                self.look(get)?.and_then(Result::ok).flatten()
            }
        };
        found.iter().for_each(|record| self.conceal(record));
        Ok(found)
    }

    /// Every sign-in, by the URL of its endpoint. Those that cannot be read are left out, which is said.
    ///
    /// # Errors
    /// As for one.
    pub fn all(&self) -> Result<Vec<(String, Record)>, StoreProblem> {
        let every = |sign_ins: &SignIns<'_>| sign_ins.all();
        let (found, unreadable) = match self.look(every)? {
            Some(found) => found,
            None => {
                self.set_aside(None)?;
                self.look(every)?.unwrap_or_default()
            }
        };
        if unreadable > 0 {
            let path = self.path();
            self.report.warning(format!(
                "{unreadable} of the sign-ins in {} cannot be read; those endpoints need a new one",
                path.display()
            ));
        }
        found.iter().for_each(|(_, record)| self.conceal(record));
        Ok(found)
    }

    /// Changes whenever another text stands there. Costs one look at the folder.
    pub fn stamp(&self) -> Stamp {
        Stamp::of(&self.path())
    }

    /// One process at a time for each URL. Held while its tokens are renewed, for a refresh token may be sent but once.
    ///
    /// # Errors
    /// Another process held it for `limit`, or nothing can be locked there.
    pub async fn exclusive(&self, url: &str, limit: Duration) -> Result<RecordLock, StoreProblem> {
        let path = self.guard(url, "lock")?;
        let held = Exclusive::within(&path, limit).await?;
        Ok(RecordLock { store: self.clone(), url: url.to_owned(), path, _held: held })
    }

    /// The one process that asks the user to sign in at this URL. `None`: another one does.
    ///
    /// # Errors
    /// Nothing can be locked there.
    pub fn try_attempt(&self, url: &str) -> Result<Option<AttemptLock>, StoreProblem> {
        let path = self.guard(url, "attempt")?;
        let pending = sign_in_path(&self.folder, url, "json");
        Ok(Exclusive::attempt(&path)?.map(|held| AttemptLock::new(self.clone(), pending, held)))
    }

    /// The sign-in that another process conducts, as far as it can be read. Whoever only looks puts nothing right.
    pub fn pending(&self, url: &str) -> Option<Pending> {
        let text = self.text(&sign_in_path(&self.folder, url, "json")).ok()??;
        super::attempt::parse(&text.ok()?)
    }

    /// Where a lock of a URL is. Its folder is there and private.
    fn guard(&self, url: &str, extension: &str) -> Result<PathBuf, StoreProblem> {
        self.prepare()?;
        Ok(sign_in_path(&self.folder, url, extension))
    }

    fn prepare(&self) -> Result<(), StoreProblem> {
        for folder in [&self.folder, &sign_ins_folder(&self.folder)] {
            file::make_private_folder(folder).map_err(StoreProblem::file(folder))?;
            self.close_folder(folder)?;
        }
        Ok(())
    }

    fn close_folder(&self, folder: &Path) -> Result<(), StoreProblem> {
        if let Some(loosened) = file::tighten_folder(folder).map_err(StoreProblem::file(folder))? {
            self.report.warning(format!("{} {loosened}", folder.display()));
        }
        Ok(())
    }

    /// The text of one of the store's own files. `None`: there is none.
    pub(super) fn text(&self, path: &Path) -> Result<Option<Text>, StoreProblem> {
        match file::read_private(path, LIMIT) {
            Ok(private) => {
                if let Some(loosened) = private.loosened {
                    self.report.warning(format!(
                        "{} {loosened}; if others use this machine, sign out and in again, for what is in it may have been copied",
                        path.display()
                    ));
                }
                Ok(Some(Ok(private.text)))
            }
            Err(FileProblem::Missing) => Ok(None),
            Err(FileProblem::NotText) => Ok(Some(Err("it is not UTF-8 text"))),
            Err(FileProblem::TooLarge(_)) => Ok(Some(Err("it is too large"))),
            Err(why) => Err(StoreProblem::file(path)(why)),
        }
    }

    /// What `take` finds among the sign-ins. `None`: they are damaged.
    fn look<T>(&self, take: impl FnOnce(&SignIns<'_>) -> T) -> Result<Option<T>, StoreProblem> {
        let path = self.path();
        let text = self.text(&path)?;
        if text.is_some() {
            self.close_folder(&self.folder)?;
        }
        match parse(text.as_ref()) {
            Ok(sign_ins) => Ok(Some(take(&sign_ins))),
            Err(Unusable::Damaged(_)) => Ok(None),
            Err(Unusable::Newer(version)) => Err(StoreProblem::Newer { path, version }),
        }
    }

    /// Sets aside what is damaged, if it still is: the file, or the record of a URL.
    fn set_aside(&self, url: Option<&str>) -> Result<(), StoreProblem> {
        self.prepare()?;
        match Exclusive::attempt(&self.writing())? {
            Some(writing) => self.change(&writing, url, |_| false).map(drop),
            // Whoever holds it is about to write, and does the same on the way.
            None => Ok(()),
        }
    }

    /// Held while the file is written.
    fn writing(&self) -> PathBuf {
        sign_ins_folder(&self.folder).join(format!("{NAME}.lock"))
    }

    /// Reads what is there now, and writes it again if `change` says that it did something. What is damaged, of the file
    /// or of the record of a URL, is set aside on the way.
    fn change(
        &self,
        _: &Exclusive,
        url: Option<&str>,
        change: impl FnOnce(&mut SignIns<'_>) -> bool,
    ) -> Result<bool, StoreProblem> {
        let path = self.path();
        let text = self.text(&path)?;
        let mut sign_ins = match parse(text.as_ref()) {
            Ok(sign_ins) => sign_ins,
            Err(Unusable::Newer(version)) => return Err(StoreProblem::Newer { path, version }),
            Err(Unusable::Damaged(why)) => {
                self.move_aside(&path, why)?;
                SignIns::default()
            }
        };
        let unreadable = url.is_some_and(|url| sign_ins.remove_unreadable(url));
        if let Some(Ok(text)) = text.as_ref().filter(|_| unreadable) {
            self.copy_aside(&path, text)?;
        }
        let changed = change(&mut sign_ins);
        if changed || unreadable {
            self.put(&path, &sign_ins)?;
        }
        Ok(changed)
    }

    /// Writes one of the store's own files.
    pub(super) fn put(&self, path: &Path, value: &impl serde::Serialize) -> Result<(), StoreProblem> {
        let wrong = StoreProblem::file(path);
        let text = text_of(value).map_err(|why| wrong(FileProblem::System { attempt: "written", why }))?;
        if u64::try_from(text.len()).is_ok_and(|length| length > LIMIT) {
            return Err(StoreProblem::Full { path: path.to_owned(), limit: LIMIT });
        }
        file::sweep(path);
        file::write_whole(path, &text, Mode::Private).map_err(wrong)
    }

    fn move_aside(&self, path: &Path, why: &str) -> Result<(), StoreProblem> {
        let aside = free_name(path);
        file::rename(path, &aside).map_err(StoreProblem::file(path))?;
        self.report.warning(format!(
            "{} is damaged: {why}; it was set aside as {}, and each endpoint needs a new sign-in",
            path.display(),
            aside.display()
        ));
        Ok(())
    }

    fn copy_aside(&self, path: &Path, text: &str) -> Result<(), StoreProblem> {
        let aside = free_name(path);
        file::write_whole(&aside, text, Mode::Private).map_err(StoreProblem::file(&aside))?;
        self.report.warning(format!(
            "{} is damaged: the sign-in of this endpoint cannot be read, and it needs a new one; the others are kept, and the file as it was is {}",
            path.display(),
            aside.display()
        ));
        Ok(())
    }

    /// Looks out for what is stored from now on: an endpoint may put into its own words what it was sent.
    fn conceal(&self, record: &Record) {
        self.conceal_client(&record.client);
        let Some(tokens) = &record.tokens else { return };
        self.report.conceal(tokens.access.0.expose_secret());
        if let Some(refresh) = &tokens.refresh {
            self.report.conceal(refresh.0.expose_secret());
        }
    }

    pub(super) fn conceal_client(&self, client: &Client) {
        if let Some(secret) = &client.secret {
            self.report.conceal(secret.0.expose_secret());
        }
    }

    pub(super) fn conceal_secret(&self, secret: &Secret) {
        self.report.conceal(secret.expose_secret());
    }
}

/// A text, or why what is there is none.
pub(super) type Text = Result<Zeroizing<String>, &'static str>;

fn parse(text: Option<&Text>) -> Result<SignIns<'_>, Unusable> {
    match text {
        None => Ok(SignIns::default()),
        Some(Ok(text)) => SignIns::parse(text),
        Some(Err(why)) => Err(Unusable::Damaged(why)),
    }
}

/// A name for what is set aside. Whoever asks is the only one who sets aside.
fn free_name(path: &Path) -> PathBuf {
    let now = DateTime::<Utc>::from(SystemTime::now()).format("%Y%m%dT%H%M%SZ").to_string();
    let named = |end: &str| path.with_file_name(format!("{NAME}.corrupt-{now}{end}"));
    let is_free = |path: &PathBuf| std::fs::symlink_metadata(path).is_err();
    let first = named("");
    if is_free(&first) {
        return first;
    }
    (2..).map(|count: u64| named(&format!("-{count}"))).find(is_free).unwrap_or(first)
}

/// The sign-in at one URL, which no other process changes while this is held.
pub struct RecordLock {
    store: Store,
    url: String,
    path: PathBuf,
    _held: Exclusive,
}

impl RecordLock {
    /// What is stored now.
    ///
    /// # Errors
    /// As for [`Store::read`].
    pub fn read(&self) -> Result<Option<Record>, StoreProblem> {
        self.store.read(&self.url)
    }

    /// Stores a sign-in in place of what was there. It is on the disk when this is done.
    ///
    /// # Errors
    /// It cannot be written, and the old one is still there; or another process does not finish writing.
    pub async fn write(&self, record: &Record) -> Result<(), StoreProblem> {
        self.store.conceal(record);
        self.change(|sign_ins| {
            sign_ins.put(&self.url, record);
            true
        })
        .await
        .map(drop)
    }

    /// Removes the sign-in, and says whether there was one.
    ///
    /// # Errors
    /// As for writing.
    pub async fn forget(&self) -> Result<bool, StoreProblem> {
        self.change(|sign_ins| sign_ins.remove(&self.url)).await
    }

    async fn change(&self, change: impl FnOnce(&mut SignIns<'_>) -> bool) -> Result<bool, StoreProblem> {
        self.store.prepare()?;
        let writing = Exclusive::within(&self.store.writing(), WRITING).await?;
        self.store.change(&writing, Some(&self.url), change)
    }
}

/// Without the URL, whose query is nobody's business.
impl fmt::Debug for RecordLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordLock").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::{Format, Level};
    use crate::secret::{AccessToken, ClientSecret, CodeVerifier, RefreshToken};
    use crate::store::{ClientAuthentication, ClientOrigin, Pending, Tokens};

    pub(in super::super) const URL: &str = "https://mcp.example/mcp?team=1";
    pub(in super::super) const OTHER: &str = "https://other.example/mcp";

    pub(in super::super) fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = store_in(&folder.path().join("config"));
        (folder, store)
    }

    pub(in super::super) fn store_in(folder: &Path) -> Store {
        Store::new(folder.to_owned(), Report::start(Level::Error, Format::Text))
    }

    fn client() -> Client {
        Client {
            id: "us".into(),
            secret: Some(ClientSecret(Secret::new("hidden-client".into()))),
            secret_expires_at: None,
            authentication: ClientAuthentication::Basic,
            origin: ClientOrigin::Registered,
            redirect_uri: Some("http://127.0.0.1:1234/callback".into()),
        }
    }

    pub(in super::super) fn record(obtained_at: u64) -> Record {
        Record {
            issuer: "https://as.example".into(),
            resource: "https://mcp.example/mcp".into(),
            client: client(),
            token_endpoint: "https://as.example/token".into(),
            revocation_endpoint: None,
            signed_in_at: 1,
            asked: vec!["tools".into()],
            granted: Vec::new(),
            missing: Vec::new(),
            tokens: Some(Tokens {
                access: AccessToken(Secret::new("hidden-access \"quoted\"".into())),
                refresh: Some(RefreshToken(Secret::new("hidden-refresh".into()))),
                obtained_at,
                expires_at: Some(2),
            }),
        }
    }

    fn pending() -> Pending {
        Pending {
            state: Secret::new("hidden-state".into()),
            verifier: CodeVerifier(Secret::new("hidden-verifier".into())),
            redirect_uri: "http://127.0.0.1:1234/callback".into(),
            link: Secret::new("https://as.example/authorize?state=hidden-state".into()),
            issuer: "https://as.example".into(),
            issuer_announced: true,
            resource: "https://mcp.example/mcp".into(),
            client: client(),
            token_endpoint: "https://as.example/token".into(),
            revocation_endpoint: Some("https://as.example/revoke".into()),
            asked: Vec::new(),
            until: 7,
        }
    }

    pub(in super::super) async fn lock(store: &Store, url: &str) -> RecordLock {
        store.exclusive(url, Duration::from_secs(60)).await.unwrap()
    }

    pub(in super::super) async fn keep(store: &Store, url: &str, obtained_at: u64) {
        lock(store, url).await.write(&record(obtained_at)).await.unwrap();
    }

    /// Puts a text where the sign-ins are, as somebody else might.
    pub(in super::super) fn put(store: &Store, text: &[u8]) {
        file::make_private_folder(&store.folder).unwrap();
        let path = store.path();
        let _ = std::fs::remove_file(&path);
        drop(file::open_private(&path).unwrap());
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), text).unwrap();
    }

    pub(in super::super) fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    pub(in super::super) fn set_aside(store: &Store) -> BTreeSet<PathBuf> {
        let entries = std::fs::read_dir(&store.folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_str().unwrap().contains("oauth.json.corrupt-")).collect()
    }

    fn one_set_aside(store: &Store) -> String {
        let aside = set_aside(store);
        assert_eq!(aside.len(), 1, "{aside:?}");
        text(aside.first().unwrap())
    }

    #[tokio::test]
    async fn what_is_stored_is_read_until_it_is_forgotten() {
        let (_folder, store) = store();
        assert_eq!(store.read(URL).unwrap(), None);
        assert!(!store.folder.exists(), "reading makes nothing");
        let held = lock(&store, URL).await;
        assert_eq!(held.read().unwrap(), None);
        assert!(!held.forget().await.unwrap());
        assert!(!store.path().exists(), "there was nothing to write");
        for time in [1, 2] {
            held.write(&record(time)).await.unwrap();
            assert_eq!(held.read().unwrap(), Some(record(time)));
            assert_eq!(store.read(URL).unwrap(), Some(record(time)));
        }
        assert!(held.forget().await.unwrap());
        assert!(!held.forget().await.unwrap());
        assert_eq!(store.read(URL).unwrap(), None);
        assert_eq!(store.all().unwrap(), []);
        assert!(set_aside(&store).is_empty());
    }

    #[tokio::test]
    async fn the_text_is_for_people_too() {
        let (_folder, store) = store();
        keep(&store, OTHER, 1).await;
        keep(&store, URL, 1).await;
        let written = text(&store.path());
        let start = format!(
            "{{\n  \"format\": \"mcp-hasp sign-ins\",\n  \"version\": 1,\n  \"sign_ins\": {{\n    \"{URL}\": {{\n      \"issuer\": \"https://as.example\",\n"
        );
        assert!(written.starts_with(&start), "{written}");
        assert!(written.ends_with("}\n"));
        let value: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(format!("{value:#}\n").len(), written.len(), "indented evenly");
    }

    #[tokio::test]
    async fn each_url_has_its_own() {
        let (_folder, store) = store();
        let urls = [
            "https://mcp.example/mcp",
            "https://mcp.example/mcp/",
            "https://mcp.example/MCP",
            "https://mcp.example/mcp?team=1",
            "https://mcp.example/mcp?team=2",
            "https://mcp.example/",
            "https://mcp.example:8443/mcp",
            "http://localhost/mcp",
            "odd \"\\\n\u{1F3B2}",
        ];
        let mut held = Vec::new();
        for (time, url) in (0..).zip(urls) {
            let one = lock(&store, url).await;
            one.write(&record(time)).await.unwrap();
            held.push(one);
        }
        for (time, url) in (0..).zip(urls) {
            assert_eq!(store.read(url).unwrap(), Some(record(time)), "{url}");
        }
        let all: BTreeSet<_> = store.all().unwrap().into_iter().map(|(url, _)| url).collect();
        assert_eq!(all, urls.map(str::to_owned).into());
        assert!(held[1].forget().await.unwrap());
        assert_eq!(store.all().unwrap().len(), urls.len() - 1);
        assert_eq!(store.read(urls[0]).unwrap(), Some(record(0)));
    }

    #[tokio::test]
    async fn a_file_cut_off_anywhere_is_set_aside_whole() {
        let (_folder, store) = store();
        keep(&store, URL, 1).await;
        let whole = text(&store.path());
        // Without its last newline it is still whole.
        for length in 0..whole.len() - 1 {
            let cut = &whole.as_bytes()[..length];
            put(&store, cut);
            assert_eq!(store.read(URL).unwrap(), None, "{length}");
            assert!(!store.path().exists());
            assert_eq!(one_set_aside(&store).as_bytes(), cut);
            set_aside(&store).iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
        put(&store, &whole.as_bytes()[..100]);
        keep(&store, URL, 2).await;
        assert_eq!(store.read(URL).unwrap(), Some(record(2)));
        assert_eq!(one_set_aside(&store), whole.get(..100).unwrap());
    }

    #[tokio::test]
    async fn what_is_no_list_of_sign_ins_is_set_aside() {
        let (_folder, store) = store();
        let texts: [&[u8]; 11] = [
            b" \n",
            b"\xff\xfe",
            b"[]",
            b"null",
            b"{}",
            b"not JSON",
            br#"{"format":"another","version":1,"sign_ins":{}}"#,
            br#"{"format":"mcp-hasp sign-ins","version":0,"sign_ins":{}}"#,
            br#"{"format":"mcp-hasp sign-ins","version":"1","sign_ins":{}}"#,
            br#"{"format":"mcp-hasp sign-ins","version":1,"sign_ins":[]}"#,
            br#"{"format":"mcp-hasp sign-ins","version":1}"#,
        ];
        for (count, text) in (1..).zip(texts) {
            put(&store, text);
            assert_eq!(store.all().unwrap(), []);
            assert_eq!(store.all().unwrap(), []);
            // Many within one second have a name each.
            assert_eq!(set_aside(&store).len(), count);
        }
        for path in set_aside(&store) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let time: Vec<_> = name.trim_start_matches("oauth.json.corrupt-").split('-').collect();
            assert!(time[0].len() == 16 && time[0].ends_with('Z') && time.len() <= 2, "{name}");
        }
    }

    #[tokio::test]
    async fn one_damaged_record_costs_no_other() {
        let (_folder, store) = store();
        keep(&store, URL, 1).await;
        keep(&store, OTHER, 2).await;
        let damaged = text(&store.path()).replacen("\"hidden-access", "7, \"x\": \"hidden-access", 1);
        put(&store, damaged.as_bytes());
        // None of the other's business.
        assert_eq!(store.read(OTHER).unwrap(), Some(record(2)));
        assert_eq!(store.all().unwrap(), [(OTHER.to_owned(), record(2))]);
        keep(&store, OTHER, 3).await;
        assert!(set_aside(&store).is_empty());
        let damaged = text(&store.path());
        assert_eq!(store.read(URL).unwrap(), None);
        assert_eq!(one_set_aside(&store), damaged);
        assert_eq!(store.read(OTHER).unwrap(), Some(record(3)));
        keep(&store, URL, 4).await;
        assert_eq!(store.all().unwrap().len(), 2);
        assert_eq!(set_aside(&store).len(), 1);
        // Written over without having been read.
        put(&store, damaged.as_bytes());
        keep(&store, URL, 5).await;
        assert_eq!(set_aside(&store).len(), 2);
        assert_eq!(store.all().unwrap(), [(URL.to_owned(), record(5)), (OTHER.to_owned(), record(3))]);
    }

    #[tokio::test]
    async fn what_a_later_release_added_stays() {
        let (_folder, store) = store();
        keep(&store, OTHER, 1).await;
        let later = text(&store.path()).replacen("\"issuer\"", "\"since\": [ 1,2],\n      \"issuer\"", 1);
        let later = later.replacen("\"sign_ins\"", "\"also\": {\"a\" : 1e99},\n  \"sign_ins\"", 1);
        put(&store, later.as_bytes());
        keep(&store, URL, 2).await;
        let written = text(&store.path());
        assert!(
            written.contains("\"since\": [ 1,2],") && written.contains("\"also\": {\"a\" : 1e99}"),
            "{written}"
        );
        assert_eq!(store.read(OTHER).unwrap(), Some(record(1)));
    }

    #[tokio::test]
    async fn a_newer_file_is_left_alone() {
        let (_folder, store) = store();
        let newer = br#"{"sign_ins":7,"version":2,"format":"mcp-hasp sign-ins"}"#;
        put(&store, newer);
        let held = lock(&store, URL).await;
        for wrong in [
            store.read(URL).map(drop),
            store.all().map(drop),
            held.read().map(drop),
            held.write(&record(1)).await,
            held.forget().await.map(drop),
        ] {
            let wrong = wrong.unwrap_err().to_string();
            assert!(
                wrong.contains("oauth.json was written by a newer mcp-hasp (version 2 of its format)"),
                "{wrong}"
            );
        }
        assert_eq!(text(&store.path()).as_bytes(), newer);
        assert!(set_aside(&store).is_empty());
    }

    #[tokio::test]
    async fn a_write_that_fails_leaves_the_old_file() {
        let (_folder, store) = store();
        keep(&store, URL, 1).await;
        let before = store.stamp();
        let mut large = record(2);
        large.granted = vec!["x".repeat(usize::try_from(LIMIT).unwrap())];
        let wrong = lock(&store, URL).await.write(&large).await.unwrap_err();
        assert!(matches!(wrong, StoreProblem::Full { limit: LIMIT, .. }));
        assert_eq!(store.stamp(), before);
        assert_eq!(store.read(URL).unwrap(), Some(record(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_that_never_ends_is_not_waited_for_in_vain() {
        let (_folder, store) = store();
        keep(&store, URL, 1).await;
        let held = lock(&store, URL).await;
        let writing = Exclusive::attempt(&store.writing()).unwrap().unwrap();
        let wrong = held.write(&record(2)).await.unwrap_err();
        assert!(matches!(wrong, StoreProblem::Busy { waited: WRITING, .. }), "{wrong}");
        assert_eq!(store.read(URL).unwrap(), Some(record(1)), "reading waits for nobody");
        put(&store, b"damaged");
        assert_eq!(store.read(URL).unwrap(), None);
        assert_eq!(text(&store.path()), "damaged", "whoever writes sets it aside");
        drop(writing);
        held.write(&record(3)).await.unwrap();
        assert_eq!(one_set_aside(&store), "damaged");
        assert_eq!(store.read(URL).unwrap(), Some(record(3)));
    }

    #[tokio::test]
    async fn another_text_has_another_stamp() {
        let (_folder, store) = store();
        let mut last = store.stamp();
        assert_eq!(store.stamp(), last);
        for _ in 0..20 {
            keep(&store, URL, 1).await;
            let stamp = store.stamp();
            assert_ne!(stamp, last);
            assert_eq!(stamp, store.stamp());
            last = stamp;
        }
        assert!(lock(&store, URL).await.forget().await.unwrap());
        assert_ne!(store.stamp(), last);
    }

    #[tokio::test]
    async fn one_process_asks_and_leaves_to_the_next_what_it_began() {
        let (_folder, store) = store();
        let first = store.try_attempt(URL).unwrap().unwrap();
        assert!(store.try_attempt(URL).unwrap().is_none());
        assert!(store.try_attempt(OTHER).unwrap().is_some());
        drop(lock(&store, URL).await);
        assert_eq!(first.read().unwrap(), None);
        first.clear().unwrap();
        first.write(&pending()).unwrap();
        drop(first);
        let next = store.try_attempt(URL).unwrap().unwrap();
        assert_eq!(next.read().unwrap(), Some(pending()));
        next.clear().unwrap();
        assert_eq!(next.read().unwrap(), None);
    }

    #[test]
    fn a_pending_sign_in_that_cannot_be_used_is_removed() {
        let (_folder, store) = store();
        let attempt = store.try_attempt(URL).unwrap().unwrap();
        attempt.write(&pending()).unwrap();
        let path = sign_in_path(&store.folder, URL, "json");
        let whole = text(&path);
        for unusable in [
            "",
            whole.get(..50).unwrap(),
            &whole.replacen("\"version\": 1", "\"version\": 2", 1),
            &whole.replacen("pending sign-in", "list", 1),
            &whole.replacen("\"until\": 7", "\"until\": \"7\"", 1),
        ] {
            file::write_whole(&path, unusable, Mode::Private).unwrap();
            assert_eq!(attempt.read().unwrap(), None);
            assert!(!path.exists());
        }
    }

    #[tokio::test]
    async fn nothing_shows_a_secret() {
        let (_folder, store) = store();
        let held = lock(&store, URL).await;
        held.write(&record(1)).await.unwrap();
        let attempt = store.try_attempt(URL).unwrap().unwrap();
        attempt.write(&pending()).unwrap();
        let shown = format!(
            "{store:?} {held:?} {attempt:?} {:?} {:#?} {:?} {:?}",
            store.all(),
            held.read(),
            attempt.read(),
            store.stamp()
        );
        put(
            &store,
            text(&store.path()).replace("\"expires_at\": 2", "\"expires_at\": \"hidden\"").as_bytes(),
        );
        let shown = format!("{shown} {:?} {:?}", store.read(URL), store.all());
        assert!(!shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn problems_are_one_line_that_says_what_to_do() {
        let path = PathBuf::from("/c/oauth.json");
        let system = || std::io::ErrorKind::StorageFull.into();
        let problems = [
            StoreProblem::file(&path)(FileProblem::System { attempt: "written", why: system() }),
            StoreProblem::file(&path)(FileProblem::Link),
            StoreProblem::file(&path)(FileProblem::Folder),
            StoreProblem::file(&path)(FileProblem::Foreign),
            StoreProblem::file(&path)(FileProblem::Everybodys),
            StoreProblem::Newer { path: path.clone(), version: 2 },
            StoreProblem::Full { path: path.clone(), limit: 1 },
            StoreProblem::Busy { path: path.clone(), waited: WRITING },
            StoreProblem::NoLocks { path: path.clone(), why: system() },
        ];
        for problem in problems {
            let line = problem.to_string();
            assert!(line.starts_with("/c/oauth.json ") && !line.contains('\n'), "{line}");
            assert!(line.contains("; ") || line.contains(" or choose"), "{line}");
        }
    }

    #[cfg(unix)]
    mod unix {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

        use super::*;

        fn mode(path: &Path) -> u32 {
            std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
        }

        #[tokio::test]
        async fn everything_is_for_the_user_alone() {
            let (_folder, store) = store();
            keep(&store, URL, 1).await;
            put(&store, b"damaged");
            keep(&store, URL, 1).await;
            store.try_attempt(URL).unwrap().unwrap().write(&pending()).unwrap();
            let inner = sign_ins_folder(&store.folder);
            let mut files = 0;
            for folder in [&store.folder, &inner] {
                assert_eq!(mode(folder), 0o700);
                for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                    if entry.is_file() {
                        files += 1;
                        assert_eq!(mode(&entry), 0o600, "{entry:?}");
                    }
                }
            }
            assert_eq!(files, 6, "sign-ins, a damaged file, three locks, a pending sign-in");
        }

        #[tokio::test]
        async fn a_looser_mode_is_put_right_before_anything_is_read() {
            let (_folder, store) = store();
            keep(&store, URL, 1).await;
            for (file, folder) in [(0o644, 0o700), (0o600, 0o755), (0o666, 0o777), (0o400, 0o500)] {
                set_permissions(store.path(), Permissions::from_mode(file)).unwrap();
                set_permissions(&store.folder, Permissions::from_mode(folder)).unwrap();
                assert_eq!(store.read(URL).unwrap(), Some(record(1)));
                let tight = |mode: u32, tight: u32| if mode & 0o077 == 0 { mode } else { tight };
                assert_eq!(mode(&store.path()), tight(file, 0o600));
                assert_eq!(mode(&store.folder), tight(folder, 0o700));
            }
            set_permissions(&store.folder, Permissions::from_mode(0o755)).unwrap();
            drop(lock(&store, URL).await);
            assert_eq!(mode(&store.folder), 0o700);
        }

        #[tokio::test]
        async fn a_folder_for_everybody_is_refused() {
            let (_folder, store) = store();
            keep(&store, URL, 1).await;
            set_permissions(&store.folder, Permissions::from_mode(0o1777)).unwrap();
            let wrong = store.read(URL).unwrap_err().to_string();
            assert!(wrong.contains("every user may put files"), "{wrong}");
            assert!(store.exclusive(URL, Duration::ZERO).await.is_err());
            assert_eq!(mode(&store.folder), 0o1777);
        }

        #[tokio::test]
        async fn no_link_is_followed() {
            let (folder, store) = store();
            keep(&store, URL, 1).await;
            let target = folder.path().join("target");
            std::fs::rename(store.path(), &target).unwrap();
            symlink(&target, store.path()).unwrap();
            let held = lock(&store, URL).await;
            for wrong in [store.read(URL).map(drop), held.write(&record(2)).await] {
                assert!(matches!(wrong, Err(StoreProblem::File { why: FileProblem::Link, .. })));
            }
            assert!(store.path().is_symlink());
            assert!(text(&target).contains("hidden"));
            let attempt = store.try_attempt(URL).unwrap().unwrap();
            symlink(&target, sign_in_path(&store.folder, URL, "json")).unwrap();
            assert!(attempt.read().is_err() && attempt.write(&pending()).is_err());
            symlink(&target, sign_in_path(&store.folder, OTHER, "lock")).unwrap();
            assert!(store.exclusive(OTHER, Duration::ZERO).await.is_err());
        }

        /// Only the superuser can give a file away, and has no more right to it afterwards.
        #[tokio::test]
        async fn another_users_files_are_refused() {
            let (_folder, store) = store();
            keep(&store, URL, 1).await;
            let lock_file = sign_in_path(&store.folder, URL, "lock");
            for path in [&store.path(), &store.folder, &lock_file] {
                if chown(path, Some(4321), None).is_err() {
                    return;
                }
                let wrong = store.exclusive(URL, Duration::ZERO).await.map(drop);
                let wrong = wrong.and(store.read(URL).map(drop)).unwrap_err();
                assert!(matches!(wrong, StoreProblem::File { why: FileProblem::Foreign, .. }), "{wrong}");
                chown(path, Some(0), None).unwrap();
                assert_eq!(store.read(URL).unwrap(), Some(record(1)));
            }
        }

        /// The superuser may write anywhere.
        #[tokio::test]
        async fn a_folder_that_cannot_be_written_keeps_what_it_has() {
            let (_folder, store) = store();
            keep(&store, URL, 1).await;
            let held = lock(&store, URL).await;
            set_permissions(&store.folder, Permissions::from_mode(0o500)).unwrap();
            if let Err(wrong) = held.write(&record(2)).await {
                assert!(wrong.to_string().contains("cannot be written: "), "{wrong}");
                assert_eq!(store.read(URL).unwrap(), Some(record(1)));
            }
            set_permissions(&store.folder, Permissions::from_mode(0o700)).unwrap();
        }
    }
}
