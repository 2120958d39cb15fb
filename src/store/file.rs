//! Reading and writing whole files. What is written replaces the old file at once or not at all.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

/// Why a file cannot be read or written. Each is worded to follow its name.
#[derive(Debug)]
pub enum FileProblem {
    /// There is none.
    Missing,
    /// The folder it would be in is not there.
    NoFolder(PathBuf),
    /// It is a folder.
    Folder,
    /// It is a device, a pipe or a socket.
    Special,
    /// It is a symbolic link where only a file of its own will do.
    Link,
    /// Symbolic links that lead to each other.
    Loop,
    /// It belongs to another user.
    Foreign,
    /// It is a folder in which everybody may put files.
    Everybodys,
    /// It is larger than that many bytes.
    TooLarge(u64),
    /// It is not UTF-8.
    NotText,
    /// The system says why.
    System {
        /// What was tried: `read`, `written`, …
        attempt: &'static str,
        /// Its words.
        why: io::Error,
    },
}

impl FileProblem {
    fn system(attempt: &'static str) -> impl Fn(io::Error) -> Self {
        move |why| FileProblem::System { attempt, why }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileProblem::Missing => f.write_str("does not exist"),
            FileProblem::NoFolder(folder) => {
                write!(f, "cannot be written: there is no folder {}; make it first", folder.display())
            }
            FileProblem::Folder => f.write_str("is a folder; name a file"),
            FileProblem::Special => f.write_str("is a device, a pipe or a socket; name a regular file"),
            FileProblem::Link => f.write_str(
                "is a symbolic link, through which a secret could go elsewhere; put a regular file in its place",
            ),
            FileProblem::Loop => f.write_str("is a symbolic link that leads back to itself; remove it"),
            FileProblem::Foreign => f.write_str("belongs to another user; remove it or choose another place"),
            FileProblem::Everybodys => {
                f.write_str("is a folder in which every user may put files; choose one for mcp-hasp alone")
            }
            FileProblem::TooLarge(limit) => write!(f, "is larger than {limit} bytes"),
            FileProblem::NotText => f.write_str("is not UTF-8 text"),
            FileProblem::System { attempt, why } => write!(f, "cannot be {attempt}: {why}"),
        }
    }
}

/// The text of a regular file of at most `limit` bytes.
///
/// # Errors
/// There is none, it is something else or larger, or it cannot be read.
pub fn read_whole(path: &Path, limit: u64) -> Result<String, FileProblem> {
    // Opening a pipe waits for its other end, so what is one is not opened.
    check_regular(&std::fs::metadata(path).map_err(unread)?)?;
    let file = File::open(path).map_err(unread)?;
    // The path may lead elsewhere by now; what is open counts.
    let metadata = file.metadata().map_err(unread)?;
    check_regular(&metadata)?;
    let mut bytes = Vec::new();
    read_into(&mut bytes, &file, &metadata, limit)?;
    String::from_utf8(bytes).map_err(|_| FileProblem::NotText)
}

fn unread(why: io::Error) -> FileProblem {
    match why.kind() {
        ErrorKind::NotFound => FileProblem::Missing,
        _ => FileProblem::System { attempt: "read", why },
    }
}

fn read_into(bytes: &mut Vec<u8>, file: &File, metadata: &Metadata, limit: u64) -> Result<(), FileProblem> {
    if metadata.len() > limit {
        return Err(FileProblem::TooLarge(limit));
    }
    // At once: a buffer that grows leaves copies of what was in it.
    bytes.reserve_exact(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(bytes).map_err(unread)?;
    // It may have grown.
    if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) {
        return Err(FileProblem::TooLarge(limit));
    }
    Ok(())
}

/// The text of a file of secrets.
pub(super) struct Private {
    /// What is in it. Not even its `Debug` is for others.
    pub(super) text: Zeroizing<String>,
    /// What others could do with the file until now, if anything.
    pub(super) loosened: Option<Loosened>,
}

/// A mode that let others in, and was put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loosened {
    /// The mode it had.
    pub(super) was: u32,
    /// The mode it has.
    pub(super) is: u32,
}

impl fmt::Display for Loosened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loosened { was, is } = self;
        write!(f, "was open to other users (mode {was:04o}) and is closed to them now ({is:04o})")
    }
}

/// The text of a private file (see [`Mode::Private`]) of at most `limit` bytes. A mode that lets others in is put right.
pub(super) fn read_private(path: &Path, limit: u64) -> Result<Private, FileProblem> {
    let (file, metadata) = open_own(path, OpenOptions::new().read(true))?;
    let loosened = tighten(&file, &metadata, 0o600)?;
    let mut bytes = Zeroizing::new(Vec::new());
    read_into(&mut bytes, &file, &metadata, limit)?;
    match String::from_utf8(std::mem::take(&mut *bytes)) {
        Ok(text) => Ok(Private { text: Zeroizing::new(text), loosened }),
        Err(wrong) => {
            drop(Zeroizing::new(wrong.into_bytes()));
            Err(FileProblem::NotText)
        }
    }
}

/// A private file to be locked, made where it is missing. Nothing is ever in it.
pub(super) fn open_private(path: &Path) -> Result<File, FileProblem> {
    make_private_folder(folder_of(path))?;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let mut new = options.clone();
    new.create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut new, 0o600);
    match new.open(path) {
        Ok(file) => return Ok(file),
        Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
        Err(why) => return Err(FileProblem::System { attempt: "made", why }),
    }
    let (file, metadata) = open_own(path, &options)?;
    tighten(&file, &metadata, 0o600)?;
    Ok(file)
}

/// Opens a file that stands there itself, not through a link, and is the user's own.
fn open_own(path: &Path, options: &OpenOptions) -> Result<(File, Metadata), FileProblem> {
    for _ in 0..ATTEMPTS {
        let seen = std::fs::symlink_metadata(path).map_err(unread)?;
        if seen.is_symlink() {
            return Err(FileProblem::Link);
        }
        check_regular(&seen)?;
        let file = options.open(path).map_err(unread)?;
        let metadata = file.metadata().map_err(unread)?;
        // Else it was replaced between the two: by another process that wrote it anew, or by somebody's link.
        if same_file(&seen, &metadata) {
            check_own(&metadata, folder_of(path))?;
            return Ok((file, metadata));
        }
    }
    Err(FileProblem::System { attempt: "read", why: ErrorKind::ResourceBusy.into() })
}

/// Whether what is open is still what stands there.
pub(super) fn stands_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(open), Ok(standing)) => same_file(&open, &standing),
        _ => false,
    }
}

#[cfg(unix)]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The standard library does not tell here.
#[cfg(not(unix))]
fn same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// Keeps others out of a folder of secrets. One that everybody may use is not taken away from them.
pub(super) fn tighten_folder(folder: &Path) -> Result<Option<Loosened>, FileProblem> {
    if cfg!(not(unix)) {
        // Folders cannot be opened here as files are; a user's own let nobody else in.
        return Ok(None);
    }
    let open = File::open(folder).map_err(unread)?;
    let metadata = open.metadata().map_err(unread)?;
    check_own(&metadata, folder)?;
    if is_everybodys(&metadata) {
        return Err(FileProblem::Everybodys);
    }
    tighten(&open, &metadata, 0o700)
}

/// Makes the folder in which a private file will be.
pub(super) fn make_private_folder(folder: &Path) -> Result<(), FileProblem> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(FileProblem::system("given a folder"))
}

#[cfg(unix)]
fn is_everybodys(folder: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    // The sticky bit, as /tmp has it.
    folder.permissions().mode() & 0o1000 != 0
}

#[cfg(not(unix))]
fn is_everybodys(_: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn tighten(file: &File, metadata: &Metadata, is: u32) -> Result<Option<Loosened>, FileProblem> {
    use std::os::unix::fs::PermissionsExt as _;
    let was = metadata.permissions().mode() & 0o7777;
    if was & 0o077 == 0 {
        return Ok(None);
    }
    file.set_permissions(Permissions::from_mode(is)).map_err(FileProblem::system("kept from other users"))?;
    Ok(Some(Loosened { was, is }))
}

#[cfg(not(unix))]
fn tighten(_: &File, _: &Metadata, _: u32) -> Result<Option<Loosened>, FileProblem> {
    Ok(None)
}

/// What stands there must belong to whoever runs this, the superuser included: what a process makes is its own, and a
/// pipe can be made where nothing can be written.
#[cfg(unix)]
fn check_own(metadata: &Metadata, folder: &Path) -> Result<(), FileProblem> {
    use std::os::unix::fs::MetadataExt as _;
    let (pipe, _) = io::pipe().map_err(unread)?;
    let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
    if pipe.metadata().map_err(unread)?.uid() == metadata.uid() {
        return Ok(());
    }
    // There are file systems that give all their files one owner, whoever made them.
    let new = Temporary::create(folder, Mode::Private).map_err(|_| FileProblem::Foreign)?;
    check_owner(Some(metadata), &new, Mode::Private)
}

#[cfg(not(unix))]
fn check_own(_: &Metadata, _: &Path) -> Result<(), FileProblem> {
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn check_regular(metadata: &Metadata) -> Result<(), FileProblem> {
    if metadata.is_dir() {
        Err(FileProblem::Folder)
    } else if !metadata.is_file() {
        Err(FileProblem::Special)
    } else {
        Ok(())
    }
}

/// Who may see what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The user alone: 0600, in folders that are made with 0700 where they are missing. Never through a symbolic link,
    /// never over a file of another user.
    Private,
    /// Whoever the user lets see such files: the mode it has, or the default for a new one. A symbolic link stays, and
    /// what it leads to is written. The folder must be there.
    Shared,
}

/// Makes `text` what stands in a file. Whatever fails, and whenever the machine stops, the file has its old text or the
/// new one, whole.
///
/// # Errors
/// It cannot; the old file is as it was (unless only its folder could not be synced) and nothing is left beside it.
pub fn write_whole(path: &Path, text: &str, mode: Mode) -> Result<(), FileProblem> {
    let path = &match mode {
        Mode::Private => path.to_owned(),
        Mode::Shared => end_of_links(path)?,
    };
    let old = look_at(path)?;
    let folder = folder_of(path);
    if mode == Mode::Private {
        make_private_folder(folder)?;
    }
    let mut new = Temporary::create(folder, mode)?;
    check_owner(old.as_ref(), &new, mode)?;
    let kept = old.map(|old| old.permissions()).filter(|_| mode == Mode::Shared);
    new.fill(text, kept).map_err(FileProblem::system("written"))?;
    new.put_in_place_of(path).map_err(FileProblem::system("replaced"))?;
    sync_folder(folder).map_err(FileProblem::system("written for good"))
}

/// More links than this lead nowhere (as POSIX's `SYMLOOP_MAX`).
const MOST_LINKS: usize = 40;

/// What a path leads to through symbolic links, be it there or not.
fn end_of_links(path: &Path) -> Result<PathBuf, FileProblem> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {}
            _ => return Ok(path),
        }
        let target = std::fs::read_link(&path).map_err(FileProblem::system("followed"))?;
        // Relative to where the link is; an absolute one stands for itself.
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(FileProblem::Loop)
}

/// The file that stands there, if one does and it may be replaced.
fn look_at(path: &Path) -> Result<Option<Metadata>, FileProblem> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => Err(FileProblem::Link),
        Ok(metadata) => check_regular(&metadata).map(|()| Some(metadata)),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        Err(why) => Err(FileProblem::System { attempt: "written", why }),
    }
}

/// A file just made belongs to whoever runs this; an old one must too.
#[cfg(unix)]
fn check_owner(old: Option<&Metadata>, new: &Temporary, mode: Mode) -> Result<(), FileProblem> {
    use std::os::unix::fs::MetadataExt as _;
    let Some(old) = old.filter(|_| mode == Mode::Private) else { return Ok(()) };
    let own = new.file.metadata().map_err(FileProblem::system("written"))?.uid();
    if old.uid() == own { Ok(()) } else { Err(FileProblem::Foreign) }
}

#[cfg(not(unix))]
fn check_owner(_: Option<&Metadata>, _: &Temporary, _: Mode) -> Result<(), FileProblem> {
    Ok(())
}

/// A new file beside the one it will replace. Removed again unless it comes to that.
struct Temporary {
    path: PathBuf,
    file: File,
    in_place: bool,
}

/// How its name begins.
const PREFIX: &str = ".mcp-hasp-";
/// How its name ends.
const SUFFIX: &str = ".tmp";
/// Names tried before giving up. Each is random; a second one is hardly ever needed.
const ATTEMPTS: usize = 8;

impl Temporary {
    fn create(folder: &Path, mode: Mode) -> Result<Self, FileProblem> {
        let mut options = OpenOptions::new();
        // Never one that is there: it could be somebody's link.
        options.write(true).create_new(true);
        #[cfg(unix)]
        if mode == Mode::Private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = mode;
        let mut last = ErrorKind::AlreadyExists.into();
        for _ in 0..ATTEMPTS {
            let random = RandomState::new().build_hasher().finish();
            let path = folder.join(format!("{PREFIX}{}-{random:016x}{SUFFIX}", std::process::id()));
            match options.open(&path) {
                Ok(file) => return Ok(Temporary { path, file, in_place: false }),
                Err(why) if why.kind() == ErrorKind::AlreadyExists => last = why,
                Err(why) if why.kind() == ErrorKind::NotFound => {
                    return Err(FileProblem::NoFolder(folder.to_owned()));
                }
                Err(why) => return Err(FileProblem::System { attempt: "written", why }),
            }
        }
        Err(FileProblem::System { attempt: "written", why: last })
    }

    fn fill(&mut self, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        if let Some(permissions) = permissions {
            self.file.set_permissions(permissions)?;
        }
        // Before the renaming: else a crash could leave the new name with nothing behind it.
        self.file.sync_all()
    }

    fn put_in_place_of(&mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.in_place = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.in_place {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Gives a file another name, for good.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), FileProblem> {
    std::fs::rename(from, to).map_err(FileProblem::system("renamed"))?;
    sync_folder(folder_of(to)).map_err(FileProblem::system("renamed for good"))
}

/// After this nobody writes any more what was to replace a file.
const STALE: Duration = Duration::from_secs(60);

/// Removes what processes left beside a file that were killed before they had written it: secrets may be in it.
pub(super) fn sweep(path: &Path) {
    let Ok(entries) = std::fs::read_dir(folder_of(path)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        let is_stale = || entry.metadata().ok()?.modified().ok()?.elapsed().ok().map(|age| age > STALE);
        if is_ours && is_stale() == Some(true) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Makes a renaming last. Some file systems know no such thing for folders, and have nothing better.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(why) if matches!(why.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        outcome => outcome,
    }
}

/// Folders cannot be opened here as files are.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn put(path: &Path, bytes: &[u8]) {
        File::create(path).unwrap().write_all(bytes).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_text_is_read_up_to_its_limit() {
        let folder = folder();
        let path = folder.path().join("a");
        put(&path, "grün".as_bytes());
        assert_eq!(read_whole(&path, 5).unwrap(), "grün");
        assert!(matches!(read_whole(&path, 4), Err(FileProblem::TooLarge(4))));
        put(&path, b"\xff");
        assert!(matches!(read_whole(&path, 5), Err(FileProblem::NotText)));
        assert!(matches!(read_whole(&folder.path().join("b"), 5), Err(FileProblem::Missing)));
        assert!(matches!(read_whole(folder.path(), 5), Err(FileProblem::Folder)));
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_is_left() {
        let folder = folder();
        for mode in [Mode::Private, Mode::Shared] {
            let path = folder.path().join(format!("{mode:?}"));
            for text in ["one", "", "three\n"] {
                write_whole(&path, text, mode).unwrap();
                assert_eq!(read_whole(&path, 100).unwrap(), text);
            }
        }
        assert_eq!(names(folder.path()), ["Private", "Shared"]);
    }

    #[test]
    fn only_private_files_get_their_folders() {
        let folder = folder();
        let path = folder.path().join("a").join("b").join("c");
        let wrong = write_whole(&path, "x", Mode::Shared).unwrap_err();
        assert!(
            matches!(&wrong, FileProblem::NoFolder(named) if *named == folder.path().join("a").join("b"))
        );
        write_whole(&path, "x", Mode::Private).unwrap();
        assert_eq!(read_whole(&path, 9).unwrap(), "x");
    }

    #[test]
    fn a_failed_write_leaves_everything_as_it_was() {
        let folder = folder();
        let taken = folder.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        assert!(matches!(write_whole(&taken, "x", Mode::Shared), Err(FileProblem::Folder)));
        // Past the look at it: the renaming fails.
        let mut new = Temporary::create(folder.path(), Mode::Private).unwrap();
        new.fill("x", None).unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        assert!(new.put_in_place_of(&taken).is_err());
        drop(new);
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[test]
    fn what_a_killed_writer_left_is_removed_once_it_is_old() {
        let folder = folder();
        let old = std::time::SystemTime::now() - 2 * STALE;
        for (name, is_old) in [(".mcp-hasp-1-a.tmp", true), (".mcp-hasp-1-b.tmp", false), ("x.tmp", true)] {
            put(&folder.path().join(name), b"x");
            if is_old {
                let file = OpenOptions::new().write(true).open(folder.path().join(name)).unwrap();
                file.set_modified(old).unwrap();
            }
        }
        sweep(&folder.path().join("file"));
        assert_eq!(names(folder.path()), [".mcp-hasp-1-b.tmp", "x.tmp"]);
    }

    #[test]
    fn two_writers_leave_one_whole_text() {
        let folder = folder();
        let path = folder.path().join("a");
        let texts = ["a".repeat(100_000), "b".repeat(100_000)];
        std::thread::scope(|scope| {
            for text in &texts {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..5 {
                        write_whole(path, text, Mode::Private).unwrap();
                    }
                });
            }
        });
        assert!(texts.contains(&read_whole(&path, 1_000_000).unwrap()));
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[cfg(unix)]
    mod unix {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        use super::*;

        fn mode(path: &Path) -> u32 {
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777
        }

        #[test]
        fn private_means_the_user_alone() {
            let folder = folder();
            let path = folder.path().join("a").join("b");
            write_whole(&path, "x", Mode::Private).unwrap();
            assert_eq!((mode(&path), mode(&folder.path().join("a"))), (0o600, 0o700));
            std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
            write_whole(&path, "y", Mode::Private).unwrap();
            assert_eq!(mode(&path), 0o600);
        }

        #[test]
        fn shared_keeps_the_mode_that_is_there() {
            let folder = folder();
            let (path, plain) = (folder.path().join("a"), folder.path().join("plain"));
            put(&plain, b"");
            write_whole(&path, "x", Mode::Shared).unwrap();
            assert_eq!(mode(&path), mode(&plain), "the default for a new file");
            for kept in [0o640, 0o600, 0o664] {
                std::fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
                write_whole(&path, "y", Mode::Shared).unwrap();
                assert_eq!(mode(&path), kept);
            }
        }

        #[test]
        fn what_is_open_may_stand_there_no_longer() {
            let folder = folder();
            let path = folder.path().join("a");
            let open = open_private(&path).unwrap();
            assert!(stands_at(&open, &path));
            std::fs::remove_file(&path).unwrap();
            assert!(!stands_at(&open, &path));
            let other = open_private(&path).unwrap();
            assert!(!stands_at(&open, &path) && stands_at(&other, &path));
        }

        #[test]
        fn a_private_text_is_read_and_others_are_kept_out() {
            let folder = folder();
            let path = folder.path().join("a");
            write_whole(&path, "grün", Mode::Private).unwrap();
            let read = |limit| read_private(&path, limit).map(|file| (file.text.to_string(), file.loosened));
            assert_eq!(read(5).unwrap(), ("grün".to_owned(), None));
            for was in [0o604, 0o640, 0o620, 0o777] {
                std::fs::set_permissions(&path, Permissions::from_mode(was)).unwrap();
                assert_eq!(read(5).unwrap().1, Some(Loosened { was, is: 0o600 }));
                assert_eq!((mode(&path), read(5).unwrap().1), (0o600, None));
            }
            assert!(matches!(read(4), Err(FileProblem::TooLarge(4))));
            put(&path, b"\xff");
            assert!(matches!(read(5), Err(FileProblem::NotText)));
            std::fs::remove_file(&path).unwrap();
            assert!(matches!(read(5), Err(FileProblem::Missing)));
            symlink("/etc/hostname", &path).unwrap();
            assert!(matches!(read(5), Err(FileProblem::Link)));
            assert!(matches!(read_private(folder.path(), 5), Err(FileProblem::Folder)));
            assert!(matches!(read_private(Path::new("/dev/null"), 5), Err(FileProblem::Special)));
        }

        #[test]
        fn a_link_is_refused_for_secrets_and_followed_else() {
            let folder = folder();
            let inner = folder.path().join("inner");
            std::fs::create_dir(&inner).unwrap();
            let (link, further, target) =
                (folder.path().join("link"), inner.join("further"), inner.join("target"));
            symlink("inner/further", &link).unwrap();
            symlink("target", &further).unwrap();
            assert!(matches!(write_whole(&link, "x", Mode::Private), Err(FileProblem::Link)));
            for text in ["made", "replaced"] {
                write_whole(&link, text, Mode::Shared).unwrap();
                assert_eq!(read_whole(&target, 9).unwrap(), text);
            }
            assert_eq!(read_whole(&link, 9).unwrap(), "replaced");
            assert!(link.is_symlink() && further.is_symlink());
            let (one, other) = (folder.path().join("one"), folder.path().join("other"));
            symlink("other", &one).unwrap();
            symlink("one", &other).unwrap();
            assert!(matches!(write_whole(&one, "x", Mode::Shared), Err(FileProblem::Loop)));
        }

        #[test]
        fn a_pipe_or_a_device_is_neither_waited_for_nor_replaced() {
            let folder = folder();
            let socket = folder.path().join("socket");
            let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            let pipe = folder.path().join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
            assert!(made.success());
            for special in [&socket, &pipe, Path::new("/dev/null")] {
                assert!(matches!(read_whole(special, 9), Err(FileProblem::Special)), "{special:?}");
                assert!(matches!(write_whole(special, "x", Mode::Private), Err(FileProblem::Special)));
                assert!(matches!(write_whole(special, "x", Mode::Shared), Err(FileProblem::Special)));
            }
        }

        #[test]
        fn a_folder_that_cannot_be_written_is_said() {
            let folder = folder();
            let path = folder.path().join("a");
            put(&path, b"old");
            std::fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
            // The superuser may write anywhere.
            if let Err(wrong) = write_whole(&path, "new", Mode::Private) {
                assert!(wrong.to_string().starts_with("cannot be written: "), "{wrong}");
                assert_eq!(read_whole(&path, 9).unwrap(), "old");
            }
            std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        }
    }
}
