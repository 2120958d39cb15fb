//! Where the files of this program are.

use std::path::{Path, PathBuf};

use url::Url;

use crate::surface::Digest;

/// Names the folder, as `--config-dir` does.
const VARIABLE: &str = "MCP_HASP_CONFIG_DIR";
/// The folder within the platform's.
const OWN: &str = "mcp-hasp";

/// How a platform keeps the settings of a user.
#[derive(Clone, Copy, Debug)]
enum Platform {
    /// XDG Base Directory Specification.
    Xdg,
    Mac,
    Windows,
}

const THIS_PLATFORM: Platform = if cfg!(windows) {
    Platform::Windows
} else if cfg!(target_os = "macos") {
    Platform::Mac
} else {
    Platform::Xdg
};

/// The folder of this program: `--config-dir`, then `MCP_HASP_CONFIG_DIR`, then the platform's place for a user's
/// settings. `None` where even the home folder is not known.
pub fn config_dir(flag: Option<&Path>, environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    config_dir_on(THIS_PLATFORM, flag, environment)
}

fn config_dir_on(
    platform: Platform,
    flag: Option<&Path>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let given = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(chosen) = flag.map(Path::to_owned).or_else(|| given(VARIABLE)) {
        return Some(chosen);
    }
    // A relative one would be another folder in every working directory.
    let absolute = |name: &str| given(name).filter(|folder| folder.is_absolute());
    let settings = match platform {
        Platform::Xdg => {
            absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?
        }
        Platform::Mac => absolute("HOME")?.join("Library").join("Application Support"),
        Platform::Windows => absolute("APPDATA")?,
    };
    Some(settings.join(OWN))
}

/// Characters of a host in the name of a file.
const LONGEST_HOST: usize = 100;
/// Digits that tell two URLs with one host apart.
const DIGITS: usize = 16;

/// The lock of `--lock auto` for a URL.
pub fn auto_lock_path(config_dir: &Path, url: &str) -> PathBuf {
    config_dir.join("locks").join(format!("{}.json", name_of(url)))
}

/// Where what belongs to the sign-in at a URL is: what guards it, and what of it is under way.
pub(super) fn sign_in_path(config_dir: &Path, url: &str, extension: &str) -> PathBuf {
    sign_ins_folder(config_dir).join(format!("{}.{extension}", name_of(url)))
}

/// The folder of such files.
pub(super) fn sign_ins_folder(config_dir: &Path) -> PathBuf {
    config_dir.join("sign-ins")
}

/// A name for files of one URL, which is whole: with its query, for two queries may be two endpoints.
fn name_of(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let safe = |character: char| match character {
        'a'..='z' | '0'..='9' | '-' | '.' => character,
        _ => '_',
    };
    let host: String = host.to_ascii_lowercase().chars().take(LONGEST_HOST).map(safe).collect();
    let digest = Digest::of(url.as_bytes()).to_string();
    let digits: String =
        digest.chars().skip_while(|&character| character != ':').skip(1).take(DIGITS).collect();
    // No name begins with a dot: such a file would be hidden.
    let host = host.trim_start_matches('.');
    format!("{host}-{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(platform: Platform, flag: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        let environment = |asked: &str| {
            variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).to_owned())
        };
        config_dir_on(platform, flag.map(Path::new), &environment)
            .map(|path| path.to_str().unwrap().replace('\\', "/"))
    }

    /// An absolute path on the platform that runs the tests.
    fn root(rest: &str) -> String {
        format!("{}{rest}", if cfg!(windows) { "C:/" } else { "/" })
    }

    #[test]
    fn the_option_is_before_the_variable_and_both_before_the_platform() {
        let home = root("home/me");
        let all = [(VARIABLE, "from/variable"), ("HOME", home.as_str()), ("APPDATA", home.as_str())];
        for platform in [Platform::Xdg, Platform::Mac, Platform::Windows] {
            assert_eq!(on(platform, Some("given"), &all).as_deref(), Some("given"));
            assert_eq!(on(platform, None, &all).as_deref(), Some("from/variable"));
            assert_eq!(on(platform, None, &[(VARIABLE, ""), ("HOME", "me"), ("APPDATA", "me")]), None);
            assert_eq!(on(platform, None, &[]), None);
        }
    }

    #[test]
    fn each_platform_has_its_place() {
        let (home, xdg) = (root("home/me"), root("xdg"));
        let home = ("HOME", home.as_str());
        assert_eq!(on(Platform::Xdg, None, &[home]), Some(root("home/me/.config/mcp-hasp")));
        assert_eq!(on(Platform::Xdg, None, &[home, ("XDG_CONFIG_HOME", &xdg)]), Some(root("xdg/mcp-hasp")));
        for unusable in ["", "relative"] {
            let found = on(Platform::Xdg, None, &[home, ("XDG_CONFIG_HOME", unusable)]);
            assert_eq!(found, Some(root("home/me/.config/mcp-hasp")));
        }
        let mac = on(Platform::Mac, None, &[home, ("XDG_CONFIG_HOME", &xdg)]);
        assert_eq!(mac, Some(root("home/me/Library/Application Support/mcp-hasp")));
        assert_eq!(on(Platform::Windows, None, &[home, ("APPDATA", &xdg)]), Some(root("xdg/mcp-hasp")));
    }

    #[test]
    fn each_url_has_its_own_lock_in_one_folder() {
        let name = |url: &str| {
            let path = auto_lock_path(Path::new("c"), url);
            assert_eq!(path.parent(), Some(Path::new("c/locks")));
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        let plain = name("https://mcp.example/mcp");
        let digits = Digest::of(b"https://mcp.example/mcp").to_string();
        assert_eq!(plain, format!("mcp.example-{}.json", digits.get(7..23).unwrap()));
        assert_ne!(plain, name("https://mcp.example/mcp?team=1"));
        assert!(name("http://[::1]:8080/").starts_with("___1_-"));
        assert!(name("https://..").starts_with('-'));
        assert_eq!(name("no URL").len(), "-0123456789abcdef.json".len());
        assert!(name(&format!("https://{}.example/", "a.".repeat(120))).len() < 130);
    }
}
