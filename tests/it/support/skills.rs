//! Skills that the endpoint offers (SEP-2640).

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The capabilities of an endpoint with skills.
pub const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"extensions":{"io.modelcontextprotocol/skills":{}}}"#;

/// One skill: its files, and the entry that lists them.
#[derive(Clone)]
#[must_use]
pub struct Skill {
    folder: String,
    /// The entry, as it is listed.
    pub entry: Value,
    files: BTreeMap<String, Content>,
}

#[derive(Clone)]
struct Content {
    bytes: Vec<u8>,
    blob: bool,
}

impl Skill {
    /// A skill in that folder, named after it, with a `SKILL.md`.
    pub fn new(folder: &str) -> Self {
        let name = folder.rsplit('/').next().unwrap();
        let text = format!("---\nname: {name}\ndescription: About {name}\n---\n# {name}\n");
        let entry = json!({
            "uri": format!("{folder}/SKILL.md"),
            "frontmatter": {"name": name, "description": format!("About {name}")},
            "resources": []
        });
        let skill = Self { folder: folder.to_owned(), entry, files: BTreeMap::new() };
        skill.file("SKILL.md", &text)
    }

    /// One more file, delivered as text.
    pub fn file(self, name: &str, text: &str) -> Self {
        self.content(name, text.as_bytes(), false)
    }

    /// One more file, delivered as a blob.
    pub fn blob(self, name: &str, bytes: &[u8]) -> Self {
        self.content(name, bytes, true)
    }

    fn content(mut self, name: &str, bytes: &[u8], blob: bool) -> Self {
        let uri = format!("{}/{name}", self.folder);
        let listed = json!({"uri": uri, "digest": digest(bytes), "size": bytes.len()});
        self.entry["resources"].as_array_mut().unwrap().push(listed);
        self.files.insert(uri, Content { bytes: bytes.to_vec(), blob });
        self
    }

    /// The same with another entry.
    pub fn change(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.entry);
        self
    }
}

/// A digest as entries have it.
pub fn digest(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Everything that the endpoint knows of skills.
#[derive(Clone)]
pub struct Offered {
    entries: Vec<Value>,
    files: BTreeMap<String, Content>,
}

impl Offered {
    /// Those skills.
    pub fn new(skills: &[Skill]) -> Self {
        Self {
            entries: skills.iter().map(|skill| skill.entry.clone()).collect(),
            files: skills.iter().flat_map(|skill| skill.files.clone()).collect(),
        }
    }

    /// The array of `skills/list`.
    pub fn list(&self) -> String {
        Value::from(self.entries.clone()).to_string()
    }

    /// One entry.
    pub fn entry(&self, uri: &str) -> Option<String> {
        self.entries.iter().find(|entry| entry["uri"] == uri).map(Value::to_string)
    }

    /// The content of a file, as an item of `contents`.
    pub fn content(&self, uri: &str) -> Option<String> {
        let content = self.files.get(uri)?;
        let (member, value) = match content.blob {
            true => ("blob", STANDARD.encode(&content.bytes)),
            false => ("text", String::from_utf8(content.bytes.clone()).unwrap()),
        };
        Some(json!({"uri": uri, "mimeType": "text/markdown", member: value}).to_string())
    }

    /// Replaces the text of a file.
    pub fn set(&mut self, uri: &str, text: &str) {
        self.files.insert(uri.to_owned(), Content { bytes: text.as_bytes().to_vec(), blob: false });
    }
}
