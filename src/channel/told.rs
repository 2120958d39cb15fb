//! What of a status is news: it is compared with the one before, so that what happened in between is told, and told once.

use super::event::Event;
use super::identifier::Identifier;
use super::status::{Phase, Status};

/// What a session was told of one role.
#[derive(Debug, Default)]
pub struct Told {
    last: Option<Status>,
    /// The match whose end was told last.
    ended: Option<Identifier>,
    /// Whether the end of the match that the role is in was told.
    over: bool,
}

impl Told {
    /// What is news, in the order in which it happened. `name` stands in where a status names no role.
    pub fn news(&mut self, name: Option<&Identifier>, mut status: Status) -> Vec<Event> {
        let role = status.role.clone().or_else(|| name.cloned());
        let mut news = Vec::new();
        // Without a phase that we know, nothing is known of the match: as it was.
        if let Some(last) = self.last.as_ref().filter(|_| status.phase.is_none()) {
            status.phase = last.phase;
            status.game.clone_from(&last.game);
        }
        self.ends(&status, role.as_ref(), &mut news);
        self.seats(&status, role.as_ref(), &mut news);
        self.decides(&status, &mut news);
        self.last = Some(status);
        news
    }

    /// Whether the owner may have written since the status before: it counts more messages, or does not count them.
    pub fn owner_may_have_written(&self, status: &Status) -> bool {
        let before = self.last.as_ref().and_then(|last| last.owner_messages).unwrap_or_default();
        status.owner_messages.is_none_or(|now| now > before)
    }

    /// Fields that have another value than before, for a status that is not about a match.
    pub fn changes(&mut self, name: Option<&Identifier>, status: Status) -> Option<Event> {
        let last = self.last.replace(status);
        let (last, now) = (last?, self.last.as_ref()?);
        let changed = now.fields.iter().filter(|(field, value)| last.fields.get(*field) != Some(*value));
        let fields: Vec<_> = changed.map(|(field, value)| (field.clone(), value.clone())).collect();
        (!fields.is_empty()).then(|| Event::Changed { name: name.cloned(), fields })
    }

    fn ends(&mut self, status: &Status, role: Option<&Identifier>, news: &mut Vec<Event>) {
        let mut tell = |game: Option<&Identifier>, outcome: Option<&Identifier>| {
            news.push(Event::Ended { role: role.cloned(), outcome: outcome.cloned(), game: game.cloned() });
        };
        let Some(last) = &self.last else {
            // What was over before we looked is no news.
            self.over = status.phase == Some(Phase::Over);
            self.ended = status.previous.as_ref().map(|previous| previous.game.clone());
            if self.over && status.game.is_some() {
                self.ended.clone_from(&status.game);
            }
            return;
        };
        let was_in = matches!(last.phase, Some(Phase::In));
        let same_match = last.game == status.game;
        if was_in && !self.over {
            match status.phase {
                Some(Phase::In) if same_match => {}
                Some(Phase::Over) if same_match => {
                    tell(status.game.as_ref(), status.outcome.as_ref());
                    self.ended.clone_from(&status.game);
                    self.over = true;
                }
                // It ended while nobody looked; the receipt says how.
                _ => {
                    let receipt = status
                        .previous
                        .as_ref()
                        .filter(|previous| last.game.as_ref().is_none_or(|game| *game == previous.game));
                    tell(last.game.as_ref(), receipt.and_then(|previous| previous.outcome.as_ref()));
                    self.ended = receipt.map(|previous| previous.game.clone()).or_else(|| last.game.clone());
                    self.over = true;
                }
            }
        }
        // A whole match that passed while nobody looked.
        if let Some(previous) = &status.previous
            && self.ended.as_ref() != Some(&previous.game)
            && last.previous.as_ref().map(|before| &before.game) != Some(&previous.game)
        {
            tell(Some(&previous.game), previous.outcome.as_ref());
            self.ended = Some(previous.game.clone());
        }
        if status.phase == Some(Phase::Over)
            && !(was_in && same_match)
            && status.game.is_some()
            && self.ended != status.game
        {
            tell(status.game.as_ref(), status.outcome.as_ref());
            self.ended.clone_from(&status.game);
            self.over = true;
        }
    }

    fn seats(&mut self, status: &Status, role: Option<&Identifier>, news: &mut Vec<Event>) {
        if status.phase != Some(Phase::In) {
            return;
        }
        let is_new =
            self.last.as_ref().is_none_or(|last| last.phase != Some(Phase::In) || last.game != status.game);
        if is_new {
            self.over = false;
            news.push(Event::Seated {
                role: role.cloned(),
                team: status.team.clone(),
                game: status.game.clone(),
            });
        }
    }

    fn decides(&mut self, status: &Status, news: &mut Vec<Event>) {
        let Some(last) = &self.last else { return };
        for (what, decided) in &status.approvals {
            if is_decision(decided) && last.approvals.get(what).is_none_or(|before| !is_decision(before)) {
                let (kind, version) = what.clone();
                news.push(Event::Approval { kind, version, status: decided.clone() });
            }
        }
    }
}

fn is_decision(status: &Identifier) -> bool {
    matches!(
        status.as_str(),
        "approved" | "rejected" | "denied" | "declined" | "expired" | "withdrawn" | "failed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::status::tests::status;
    use serde_json::{Value, json};

    /// The events of statuses that follow on each other, in short.
    fn story(statuses: &[Value]) -> Vec<Vec<String>> {
        let mut told = Told::default();
        let short = |event: Event| {
            let params: Value = serde_json::from_str(&event.params()).unwrap();
            let meta = params["meta"].as_object().unwrap();
            meta.values().map(|value| value.as_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        let mut all = Vec::new();
        for one in statuses {
            all.push(told.news(None, status(one.clone())).into_iter().map(short).collect());
        }
        all
    }

    #[test]
    fn a_match_is_told_from_seat_to_end_and_nothing_twice() {
        let lobby = json!({"phase": "lobby", "role": "runner"});
        let playing = json!({"phase": "playing", "role": "runner", "team": "blue", "match": "m7"});
        let ended = json!({"phase": "ended", "role": "runner", "match": "m7", "outcome": "won"});
        let after =
            json!({"phase": "lobby", "role": "runner", "previousMatch": {"match": "m7", "outcome": "won"}});
        let told = story(&[
            lobby.clone(),
            lobby,
            playing.clone(),
            playing,
            ended.clone(),
            ended,
            after.clone(),
            after,
        ]);
        let none: Vec<String> = vec![];
        assert_eq!(told[2], ["seated m7 runner blue"]);
        assert_eq!(told[4], ["match_ended m7 won runner"]);
        for quiet in [0, 1, 3, 5, 6, 7] {
            assert_eq!(told[quiet], none, "{quiet}");
        }
    }

    #[test]
    fn who_is_seated_already_learns_it_at_the_start_and_what_is_over_is_no_news() {
        assert_eq!(story(&[json!({"phase": "playing", "match": "m7"})]), [["seated m7"]]);
        let over = json!({"phase": "ended", "match": "m7", "outcome": "won"});
        let next =
            json!({"phase": "playing", "match": "m8", "previousMatch": {"match": "m7", "outcome": "won"}});
        assert_eq!(story(&[over, next]), [vec![], vec!["seated m8".to_owned()]]);
        assert_eq!(
            story(&[json!({"phase": "lobby", "previousMatch": {"match": "m6"}})]),
            [Vec::<String>::new()]
        );
    }

    #[test]
    fn an_end_in_a_gap_is_told_once_by_its_receipt() {
        let playing = json!({"phase": "playing", "match": "m7"});
        let receipt = json!({"match": "m7", "outcome": "lost"});
        let next = json!({"phase": "playing", "match": "m8", "previousMatch": receipt});
        assert_eq!(
            story(&[playing.clone(), next.clone(), next]),
            [vec!["seated m7"], vec!["match_ended m7 lost", "seated m8"], vec![]]
        );
        let lobby = json!({"phase": "lobby", "previousMatch": receipt});
        assert_eq!(
            story(&[playing.clone(), lobby.clone(), lobby]),
            [vec!["seated m7"], vec!["match_ended m7 lost"], vec![]]
        );
        // Without a receipt it is over all the same.
        assert_eq!(story(&[playing, json!({"phase": "lobby"})]), [["seated m7"], ["match_ended m7"]]);
    }

    #[test]
    fn a_whole_match_in_a_gap_is_told_once() {
        let lobby =
            |game: &str| json!({"phase": "lobby", "previousMatch": {"match": game, "outcome": "draw"}});
        assert_eq!(
            story(&[lobby("m6"), lobby("m7"), lobby("m7"), json!({"phase": "lobby"}), lobby("m7")]),
            [vec![], vec!["match_ended m7 draw"], vec![], vec![], vec![]]
        );
        let over = json!({"phase": "ended", "match": "m8", "outcome": "won"});
        assert_eq!(story(&[lobby("m7"), over.clone(), over]), [vec![], vec!["match_ended m8 won"], vec![]]);
    }

    #[test]
    fn matches_without_ids_are_told_apart_by_their_phase() {
        let (lobby, playing) = (json!({"phase": "lobby"}), json!({"phase": "playing"}));
        let ended = json!({"phase": "over", "outcome": "won"});
        assert_eq!(
            story(&[lobby, playing.clone(), ended.clone(), ended, playing.clone(), playing]),
            [vec![], vec!["seated"], vec!["match_ended won"], vec![], vec!["seated"], vec![]]
        );
    }

    #[test]
    fn a_phase_that_nobody_knows_changes_nothing() {
        let playing = json!({"phase": "playing", "match": "m7"});
        let odd = json!({"phase": "hyperspace", "match": "m9"});
        assert_eq!(
            story(&[playing.clone(), odd, json!({}), playing]),
            [vec!["seated m7"], vec![], vec![], vec![]]
        );
    }

    #[test]
    fn a_decision_is_told_once_and_one_from_before_not_at_all() {
        let approvals = |one: &str, two: &str| json!({"approvals": [{"kind": "policy", "version": 1, "status": one}, {"kind": "policy", "version": 2, "status": two}]});
        assert_eq!(
            story(&[
                approvals("approved", "pending"),
                approvals("approved", "rejected"),
                approvals("approved", "rejected"),
                approvals("pending", "rejected"),
            ]),
            [vec![], vec!["approval_resolved policy rejected 2"], vec![], vec![]]
        );
    }

    #[test]
    fn fields_that_change_are_told_for_a_status_of_another_kind() {
        let mut told = Told::default();
        let mut change = |value: Value| match told.changes(None, status(value)) {
            Some(Event::Changed { fields, .. }) => {
                fields.iter().map(|(field, value)| format!("{field}={value}")).collect::<Vec<_>>().join(" ")
            }
            _ => String::new(),
        };
        assert_eq!(change(json!({"turn": false, "round": 1})), "");
        assert_eq!(change(json!({"turn": true, "round": 1, "text": "two words"})), "turn=true");
        assert_eq!(
            change(json!({"turn": true, "round": 2, "text": "other words", "more": {"a": 1}})),
            "round=2"
        );
    }
}
