//! The roles that the channel follows: what was told of each, what waits to be told, what is to be read.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::channel::{Event, Identifier, Inbox, Pace, Status, Told, pace::INTERVAL};

/// Roles that are followed, at most.
const MOST: usize = 32;

/// All of them, by name: that outlives a server that is started again, where an address does not.
#[derive(Debug, Default)]
pub(super) struct Roles {
    all: BTreeMap<String, Role>,
}

#[derive(Debug, Default)]
pub(super) struct Role {
    uri: Option<String>,
    told: Told,
    inbox: Inbox,
    pace: Pace,
    /// Its status has to be read.
    stale: bool,
    read_at: Option<Instant>,
    owner: Owner,
}

/// What is known of messages of a role's owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    /// There is nothing to ask.
    #[default]
    Quiet,
    /// There may be some.
    MayHaveWritten,
    /// They are asked for; and whether there may be more since.
    Asked { again: bool },
}

impl Roles {
    /// The role of that name; where there are too many, one that is followed no more gives way.
    fn role(&mut self, name: &str) -> Option<&mut Role> {
        if !self.all.contains_key(name) && self.all.len() == MOST {
            let idle = self.all.iter().find(|(_, role)| role.is_idle()).map(|(name, _)| name.clone())?;
            self.all.remove(&idle);
        }
        Some(self.all.entry(name.to_owned()).or_default())
    }

    /// Follows those resources, and no others; each is to be read.
    pub(super) fn follow(&mut self, found: &[(String, String)]) {
        for role in self.all.values_mut() {
            (role.uri, role.stale) = (None, false);
            // Who asked before has gone.
            role.owner = if role.owner == Owner::Quiet { Owner::Quiet } else { Owner::MayHaveWritten };
        }
        for (uri, name) in found {
            if let Some(role) = self.role(name) {
                (role.uri, role.stale) = (Some(uri.clone()), true);
            }
        }
    }

    /// A resource was updated, or a part of it.
    pub(super) fn touch(&mut self, uri: &str) {
        let is_of = |role: &&mut Role| role.uri.as_ref().is_some_and(|own| uri.starts_with(own.as_str()));
        self.all.values_mut().filter(is_of).for_each(|role| role.stale = true);
    }

    /// Every resource may have been updated.
    pub(super) fn touch_all(&mut self) {
        self.all.values_mut().for_each(|role| role.stale = role.uri.is_some());
    }

    /// Whether it is followed already.
    pub(super) fn follows(&self, uri: &str, name: &str) -> bool {
        self.all.get(name).is_some_and(|role| role.uri.as_deref() == Some(uri))
    }

    /// How many resources are followed.
    pub(super) fn followed(&self) -> usize {
        self.all.values().filter(|role| role.uri.is_some()).count()
    }

    /// When there is something to do next, to read or to say.
    pub(super) fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        let read = |role: &Role| role.stale.then(|| role.may_read(now));
        self.all.values().flat_map(|role| [read(role), role.pace.due(now)]).flatten().min()
    }

    /// A status that may be read now: each at most once a second, so that the newest of many updates counts.
    pub(super) fn next_to_read(&mut self) -> Option<(String, String)> {
        let now = Instant::now();
        let (name, role) = self.all.iter_mut().find(|(_, role)| role.stale && role.may_read(now) <= now)?;
        (role.stale, role.read_at) = (false, Some(now));
        Some((name.clone(), role.uri.clone()?))
    }

    /// What a status says of a role is compared with what was told.
    pub(super) fn learn(&mut self, name: &str, status: Status) {
        let Some(role) = self.role(name) else { return };
        if role.told.owner_may_have_written(&status) {
            role.owner = match role.owner {
                Owner::Asked { .. } => Owner::Asked { again: true },
                _ => Owner::MayHaveWritten,
            };
        }
        let events = role.told.news(Identifier::read(name).as_ref(), status);
        role.pace.push(events);
    }

    /// A role whose owner's messages are to be asked for.
    pub(super) fn next_to_ask(&mut self) -> Option<String> {
        let (name, role) = self.all.iter_mut().find(|(_, role)| role.owner == Owner::MayHaveWritten)?;
        role.owner = Owner::Asked { again: false };
        Some(name.clone())
    }

    /// They were asked for.
    pub(super) fn was_asked(&mut self, name: &str) {
        let Some(role) = self.all.get_mut(name) else { return };
        role.owner = match role.owner {
            Owner::Asked { again: true } => Owner::MayHaveWritten,
            _ => Owner::Quiet,
        };
    }

    /// The same for a status that is not about a match.
    pub(super) fn learn_fields(&mut self, name: &str, status: Status) {
        let Some(role) = self.role(name) else { return };
        let event = role.told.changes(Identifier::read(name).as_ref(), status);
        role.pace.push(event);
    }

    /// What a wait says the owner wrote to a role.
    pub(super) fn hear(&mut self, name: &str, result: &serde_json::Value) {
        let Some(role) = self.role(name) else { return };
        let event = role.inbox.news(Identifier::read(name).as_ref(), result);
        role.pace.push(event);
    }

    /// The events whose time has come.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        let now = Instant::now();
        self.all.values_mut().filter_map(|role| role.pace.take(now)).collect()
    }
}

impl Role {
    fn is_idle(&self) -> bool {
        self.uri.is_none() && self.pace.due(Instant::now()).is_none()
    }

    fn may_read(&self, now: Instant) -> Instant {
        self.read_at.map_or(now, |last| last + INTERVAL)
    }
}
