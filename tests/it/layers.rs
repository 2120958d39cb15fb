//! Who may know whom: each room names only rooms below it, so that a promise cannot be kept in two places.

use std::path::{Path, PathBuf};

/// A room, and the rooms it may name. `report`, `secret` and `limits` stand at the bottom with `wire` and `net`.
const ROOMS: [(&str, &[&str]); 16] = [
    ("report", &["secret"]),
    ("secret", &[]),
    ("limits", &[]),
    ("wire", &[]),
    ("net", &["report"]),
    ("store", &["report", "secret", "surface"]),
    ("surface", &["wire", "report"]),
    ("channel", &["report"]),
    ("harness", &["channel", "surface", "wire", "limits"]),
    ("endpoint", &["surface", "wire", "net", "report", "secret", "limits"]),
    ("signin", &["endpoint", "store", "net", "report", "secret"]),
    ("relay", &["channel", "harness", "endpoint", "surface", "wire", "report", "limits"]),
    ("cli", &["report"]),
    ("failure", &["endpoint", "net", "surface", "report"]),
    (
        "config",
        &[
            "channel", "cli", "failure", "endpoint", "signin", "net", "report", "secret", "limits",
            "surface", "store",
        ],
    ),
    (
        "command",
        &[
            "cli", "config", "failure", "relay", "signin", "endpoint", "store", "surface", "net", "report",
            "wire",
        ],
    ),
];

#[test]
fn each_room_names_only_rooms_below_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (room, below) in ROOMS {
        let folder = source.join(room);
        let files = if folder.is_dir() { files_in(&folder) } else { vec![source.join(format!("{room}.rs"))] };
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            for named in text.split("crate::").skip(1) {
                let named: String =
                    named.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                if named != room && !below.contains(&named.as_str()) {
                    wrong.push(format!("{} names {named}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}
