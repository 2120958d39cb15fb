//! Who may know whom: each room names only rooms below it, so that a promise cannot be kept in two places.

use std::path::Path;

/// A room, and the rooms it may name. `report`, `secret` and `limits` stand at the bottom with `wire` and `net`.
const ROOMS: [(&str, &[&str]); 13] = [
    ("report", &["secret"]),
    ("secret", &[]),
    ("limits", &[]),
    ("wire", &[]),
    ("net", &["report"]),
    ("store", &["report", "secret", "surface"]),
    ("surface", &["wire", "report"]),
    ("harness", &["surface", "wire", "limits"]),
    ("endpoint", &["surface", "wire", "net", "report", "secret", "limits"]),
    ("relay", &["harness", "endpoint", "surface", "wire", "report", "limits"]),
    ("cli", &["report"]),
    ("failure", &["endpoint", "net", "surface", "report"]),
    ("config", &["cli", "failure", "net", "report", "secret", "limits", "surface", "store"]),
];

#[test]
fn each_room_names_only_rooms_below_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (room, below) in ROOMS {
        let folder = source.join(room);
        let files: Vec<_> = match folder.is_dir() {
            true => std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect(),
            false => vec![source.join(format!("{room}.rs"))],
        };
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
