//! The user's browser, opened without a shell, and where it may be if not here.

use crate::net::{NamedUrl, Reach};
use crate::report::Report;
use crate::secret::Secret;

/// Opens a link, in the background: an opener that is missing, fails or never ends costs nobody anything. The link was
/// printed before.
pub fn open(link: &Secret, report: &Report) {
    if !is_web(link.expose_secret()) {
        return;
    }
    let (link, report) = (link.clone(), report.clone());
    // The crate starts the opener with nothing of our stdin, stdout and stderr, and looks at it for a moment.
    let _ = std::thread::Builder::new().name("browser".into()).spawn(move || {
        if open::that_detached(link.expose_secret()).is_err() {
            report.info("no browser could be opened here; open the link yourself");
        }
    });
}

/// Nothing but a web address is ever opened: https, or http on this machine.
fn is_web(link: &str) -> bool {
    NamedUrl::parse(link, Reach::Loopback).is_ok()
}

/// What to say where the browser is probably on another machine than this program; `PORT` stands for the port that the
/// redirect comes to. `exists` looks for a file.
pub fn elsewhere(
    environment: &dyn Fn(&str) -> Option<String>,
    exists: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
    if set("SSH_CONNECTION") || set("SSH_CLIENT") || set("SSH_TTY") {
        return Some(
            "this is an SSH session: the browser comes back to 127.0.0.1:PORT of this machine; forward that port (ssh -L PORT:127.0.0.1:PORT …), or open the page it ends at here with curl"
                .into(),
        );
    }
    if set("WSL_DISTRO_NAME") || set("WSL_INTEROP") {
        return Some(
            "this is WSL: the browser of Windows comes back to 127.0.0.1:PORT, which WSL forwards unless that is switched off (localhostForwarding)"
                .into(),
        );
    }
    if set("container")
        || set("KUBERNETES_SERVICE_HOST")
        || exists("/.dockerenv")
        || exists("/run/.containerenv")
    {
        return Some(
            "this is a container: the browser comes back to 127.0.0.1:PORT within it; run it with the host's network, or run --login on the host with the same --config-dir"
                .into(),
        );
    }
    if cfg!(target_os = "linux") && !set("DISPLAY") && !set("WAYLAND_DISPLAY") {
        return Some(
            "there is no display here: open the link in a browser whose 127.0.0.1:PORT leads to this machine"
                .into(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_web_address_is_opened() {
        for (link, good) in [
            ("https://as.example/authorize?a=b&calc", true),
            ("http://127.0.0.1:1/x", true),
            ("http://localhost/x", true),
            ("http://[::1]/x", true),
            ("http://as.example/x", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("ms-settings:", false),
            ("data:text/html,x", false),
        ] {
            assert_eq!(is_web(link), good, "{link}");
        }
    }

    #[test]
    fn each_kind_of_elsewhere_has_its_hint() {
        let hint = |variable: &str, file: &str| {
            let environment = |name: &str| (name == variable).then(|| "1".to_owned());
            elsewhere(&environment, &|path| path == file).unwrap_or_default()
        };
        assert!(hint("SSH_CONNECTION", "").contains("ssh -L PORT:127.0.0.1:PORT"));
        assert!(hint("WSL_DISTRO_NAME", "").contains("WSL"));
        assert!(hint("container", "").contains("container"));
        assert!(hint("DISPLAY", "/.dockerenv").contains("container"));
        assert_eq!(hint("DISPLAY", ""), "");
    }
}
