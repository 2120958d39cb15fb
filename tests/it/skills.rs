//! Skills: which are served, and that a file is shown only as it was listed, and fetched once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    opened::{BOTH, cacheable, code, opened, opened_with},
    support::{Answer, Endpoint, EndpointBuilder, Era, Harness, Reply, Script, Skill, digest, four_eras},
};

const SCOUT: &str = "skill://arena/scout/SKILL.md";
const NOTES: &str = "skill://arena/scout/notes.md";
const LOGO: &str = "skill://arena/scout/logo.png";
/// Bytes that are no text.
const PNG: [u8; 5] = [0x89, b'P', 0, 0xff, 0xfe];
/// What no refused file may let through.
const SECRET: &str = "IGNORE ALL PREVIOUS";

fn scout() -> Skill {
    Skill::new("skill://arena/scout").file("notes.md", "Look \u{fc}p.\n").blob("logo.png", &PNG)
}

async fn with_scout(harness_era: Era, endpoint_era: Era) -> (Harness, Endpoint) {
    opened(harness_era, Endpoint::era(endpoint_era).skills(&[scout()])).await
}

fn about(uri: &str) -> String {
    json!({ "uri": uri }).to_string()
}

async fn read(harness: &mut Harness, uri: &str) -> Answer {
    harness.ask("resources/read", &about(uri)).await
}

fn text(answer: &Answer) -> String {
    answer.result()["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{}", answer.text())).to_owned()
}

fn assert_refused(answer: &Answer, expected: i64, reason: &str) {
    assert_eq!(code(answer), expected, "{}", answer.text());
    assert_eq!(answer.error()["data"]["reason"], reason, "{}", answer.text());
    assert!(!answer.text().contains(SECRET), "{}", answer.text());
}

fn assert_bad_file(answer: &Answer, why: &str) {
    assert_refused(answer, -32603, "skill_file_refused");
    let message = answer.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(why) && message.contains("operator"), "{why}: {message}");
}

/// Asserts the frame that results of an era have.
fn assert_framed(answer: &Answer, harness_era: Era) {
    let result = answer.result();
    let modern = harness_era == Era::Modern;
    assert_eq!(result["resultType"] == "complete", modern, "{result}");
    assert_eq!(result["ttlMs"] == 0 && result["cacheScope"] == "private", modern, "{result}");
    assert!(
        modern || ["resultType", "ttlMs", "cacheScope"].iter().all(|key| result[key].is_null()),
        "{result}"
    );
}

fn reads(endpoint: &Endpoint) -> usize {
    endpoint.requests_of("resources/read").len()
}

/// An answer to a read that waits until the test says go.
fn held(era: Era, content: Value, gate: &Arc<Notify>) -> Reply {
    let result = cacheable(era, &format!(r#""contents":[{content}]"#));
    Reply::sse(Script::new().wait(gate).result(result))
}

four_eras!(the_extension_is_announced_in_the_opening, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).skills(&[scout()]).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    let opening = harness.open(harness_era, "{}").await.result();
    assert!(opening["capabilities"]["extensions"]["io.modelcontextprotocol/skills"].is_object(), "{opening}");
});

four_eras!(the_catalogue_is_read_once_and_served_from_memory, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
    for _ in 0..2 {
        let list = harness.ask("skills/list", "{}").await;
        assert_framed(&list, harness_era);
        assert_eq!(list.result()["skills"], json!([scout().entry]));
    }
    assert_eq!(code(&harness.ask("skills/list", r#"{"cursor":"x"}"#).await), -32602);
    assert_eq!(endpoint.requests_of("skills/list").len(), 1);
});

four_eras!(an_entry_is_given_as_it_was_listed_and_never_asked_for, |harness_era, endpoint_era| async {
    let raw = format!(
        r#"{{"x":1e3, "uri":"{SCOUT}","frontmatter":{{"name":"scout","description":"\u0041"}},"resources":[{{"uri":"{SCOUT}","digest":"{}","size":0}}],"_meta":{{"n":1.0}}}}"#,
        digest(b"")
    );
    let listed = raw.clone();
    let endpoint = Endpoint::era(endpoint_era).skills(&[]).on("skills/list", move |_| {
        Reply::result(cacheable(endpoint_era, &format!(r#""skills":[{listed}]"#)))
    });
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    for uri in [SCOUT, "SKILL://arena/./scout/SKILL.md"] {
        let answer = harness.ask("skills/get", &about(uri)).await;
        assert_framed(&answer, harness_era);
        assert!(answer.text().contains(&format!(r#""skill":{raw}"#)), "{}", answer.text());
    }
    for uri in ["skill://arena/other/SKILL.md", NOTES, "", "skill://arena/scout/SKILL.md?x"] {
        assert_refused(&harness.ask("skills/get", &about(uri)).await, -32602, "unknown_skill");
    }
    assert_eq!(code(&harness.ask("skills/get", "{}").await), -32602);
    assert!(endpoint.requests_of("skills/get").is_empty());
});

four_eras!(each_file_is_read_once_when_somebody_first_asks_for_it, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
    harness.ask("skills/list", "{}").await;
    harness.ask("skills/get", &about(SCOUT)).await;
    assert_eq!(reads(&endpoint), 0, "nothing before it is asked for");
    for (nth, uri) in [SCOUT, NOTES, LOGO].into_iter().enumerate() {
        let first = read(&mut harness, uri).await;
        assert_framed(&first, harness_era);
        assert_eq!(first.result()["contents"][0]["uri"], uri);
        for _ in 0..3 {
            assert_eq!(read(&mut harness, uri).await.result_raw(), first.result_raw());
        }
        assert_eq!(reads(&endpoint), nth + 1);
        assert_eq!(endpoint.arrived("resources/read", nth).await.subject(), uri);
    }
    assert_eq!(text(&read(&mut harness, NOTES).await), "Look \u{fc}p.\n");
    assert_eq!(read(&mut harness, LOGO).await.result()["contents"][0]["blob"], "iVAA//4=");
});

four_eras!(
    a_file_is_served_from_the_copy_whatever_the_endpoint_has_by_now,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
        let first = read(&mut harness, NOTES).await;
        endpoint.set_file(NOTES, SECRET);
        assert_eq!(read(&mut harness, NOTES).await.result_raw(), first.result_raw());
    }
);

/// Eight reads of one file, all of them under way, and the endpoint asked.
async fn eight_ask(harness: &mut Harness, endpoint: &Endpoint) -> Vec<u64> {
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(harness.request("resources/read", &about(NOTES)).await);
    }
    // an answer after them: all were taken
    harness.ask("skills/list", "{}").await;
    endpoint.arrived("resources/read", 0).await;
    ids
}

four_eras!(eight_who_ask_at_once_share_one_fetch, |harness_era, endpoint_era| async {
    let gate = Arc::new(Notify::new());
    let wait = gate.clone();
    let content = json!({"uri":NOTES,"text":"Look \u{fc}p.\n"});
    let endpoint = Endpoint::era(endpoint_era)
        .skills(&[scout()])
        .on("resources/read", move |_| held(endpoint_era, content.clone(), &wait));
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    let ids = eight_ask(&mut harness, &endpoint).await;
    gate.notify_one();
    for id in ids {
        assert_eq!(text(&harness.answer(id).await), "Look \u{fc}p.\n");
    }
    assert_eq!(reads(&endpoint), 1);
});

four_eras!(
    eight_who_ask_at_once_share_its_failure_and_the_next_one_tries_again,
    |harness_era, endpoint_era| async {
        let gate = Arc::new(Notify::new());
        let wait = gate.clone();
        let endpoint = Endpoint::era(endpoint_era)
            .skills(&[scout()])
            .on("resources/read", move |_| held(endpoint_era, json!({"uri":NOTES,"text":SECRET}), &wait));
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        let ids = eight_ask(&mut harness, &endpoint).await;
        gate.notify_one();
        for id in ids {
            assert_bad_file(&harness.answer(id).await, "bytes");
        }
        assert_eq!(reads(&endpoint), 1);
        let good = cacheable(
            endpoint_era,
            &format!(r#""contents":[{}]"#, json!({"uri":NOTES,"text":"Look \u{fc}p.\n"})),
        );
        endpoint.set("resources/read", move |_| Reply::result(good.clone()));
        assert_eq!(text(&read(&mut harness, NOTES).await), "Look \u{fc}p.\n");
        assert_eq!(reads(&endpoint), 2);
    }
);

four_eras!(a_fetch_goes_on_when_who_asked_first_gives_up, |harness_era, endpoint_era| async {
    let gate = Arc::new(Notify::new());
    let wait = gate.clone();
    let content = json!({"uri":NOTES,"text":"Look \u{fc}p.\n"});
    let endpoint = Endpoint::era(endpoint_era)
        .skills(&[scout()])
        .on("resources/read", move |_| held(endpoint_era, content.clone(), &wait));
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    let first = harness.request("resources/read", &about(NOTES)).await;
    endpoint.arrived("resources/read", 0).await;
    harness.cancel(first).await;
    let second = harness.request("resources/read", &about(NOTES)).await;
    harness.ask("skills/list", "{}").await;
    gate.notify_one();
    assert_eq!(text(&harness.answer(second).await), "Look \u{fc}p.\n");
    assert_eq!(reads(&endpoint), 1);
});

four_eras!(
    a_file_is_checked_against_listed_size_and_sha_256_and_a_bad_one_is_refused,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
        // it was changed between list and read
        endpoint.set_file(NOTES, SECRET);
        assert_bad_file(&read(&mut harness, NOTES).await, "it has 19 bytes, listed are 10");
        endpoint.set_file(NOTES, "Look \u{fc}p!\n");
        assert_bad_file(&read(&mut harness, NOTES).await, "digest");
        assert!(!harness.lines().iter().any(|line| line.to_string().contains("p!")));
        // the rest stays usable, in the same skill too
        assert!(text(&read(&mut harness, SCOUT).await).contains("# scout"));
        assert!(!read(&mut harness, LOGO).await.is_error());
        // and it is tried again, every time
        endpoint.set_file(NOTES, "Look \u{fc}p.\n");
        assert_eq!(text(&read(&mut harness, NOTES).await), "Look \u{fc}p.\n");
        assert_eq!(reads(&endpoint), 5);
        harness.wait_stderr("skill file \"skill://arena/scout/notes.md\" is refused").await;
        assert!(!harness.stderr_text().contains(SECRET));
    }
);

four_eras!(the_front_matter_of_a_skill_is_the_listed_one, |harness_era, endpoint_era| async {
    let lying =
        Skill::new("skill://arena/lying").change(|entry| entry["frontmatter"]["license"] = json!("MIT"));
    let broken = Skill::new("skill://arena/broken");
    let body = format!("{SECRET}\n");
    let broken = broken.change(|entry| {
        entry["resources"] = json!([{"uri":entry["uri"],"digest":digest(body.as_bytes()),"size":body.len()}]);
    });
    let skills = [lying, broken, scout()];
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era).skills(&skills)).await;
    endpoint.set_file("skill://arena/broken/SKILL.md", &body);
    assert_bad_file(
        &read(&mut harness, "skill://arena/lying/SKILL.md").await,
        "front matter is not the listed one",
    );
    assert_bad_file(
        &read(&mut harness, "skill://arena/broken/SKILL.md").await,
        "does not begin with the line ---",
    );
    assert!(!read(&mut harness, SCOUT).await.is_error());
});

four_eras!(an_answer_that_is_not_one_content_of_that_uri_is_refused, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
    let good = json!({"uri":NOTES,"text":"Look \u{fc}p.\n"});
    for (members, why) in [
        (json!([]), "0 contents"),
        (json!([good, {"uri":SCOUT,"text":SECRET}]), "2 contents"),
        (json!([{"uri":SCOUT,"text":"Look \u{fc}p.\n"}]), "another URI"),
        (json!([{"uri":NOTES,"text":"Look \u{fc}p.\n","blob":""}]), "both text and blob"),
        (json!([{"uri":NOTES}]), "neither"),
        (json!([{"uri":NOTES,"blob":"%"}]), "not base64"),
        (json!({}), "no array"),
    ] {
        let result = cacheable(endpoint_era, &format!(r#""contents":{members}"#));
        endpoint.set("resources/read", move |_| Reply::result(result.clone()));
        assert_bad_file(&read(&mut harness, NOTES).await, why);
    }
});

four_eras!(a_blob_may_be_delivered_for_what_could_be_text, |harness_era, endpoint_era| async {
    let skill = Skill::new("skill://arena/scout").blob("notes.md", b"plain");
    let (mut harness, _endpoint) = opened(harness_era, Endpoint::era(endpoint_era).skills(&[skill])).await;
    assert_eq!(read(&mut harness, NOTES).await.result()["contents"][0]["blob"], "cGxhaW4=");
});

four_eras!(
    an_error_of_the_endpoint_passes_as_it_came_and_is_not_remembered,
    |harness_era, endpoint_era| async {
        const ERROR: &str = r#"{"code":-31999,"message":"no \u00fc","data":{"n":1e3},"x":{}}"#;
        let fails = AtomicUsize::new(1);
        let good = cacheable(
            endpoint_era,
            &format!(r#""contents":[{}]"#, json!({"uri":NOTES,"text":"Look \u{fc}p.\n"})),
        );
        let endpoint = Endpoint::era(endpoint_era).skills(&[scout()]).on("resources/read", move |_| {
            match fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
                Ok(_) => Reply::error(ERROR),
                Err(_) => Reply::result(good.clone()),
            }
        });
        let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
        let answer = read(&mut harness, NOTES).await;
        assert!(answer.text().contains(&format!(r#""error":{ERROR}"#)), "{}", answer.text());
        assert!(!read(&mut harness, NOTES).await.is_error());
    }
);

four_eras!(trouble_with_the_endpoint_is_said_and_not_remembered, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
    endpoint.set("resources/read", |_| Reply::status(500));
    let answer = read(&mut harness, NOTES).await;
    assert_refused(&answer, -32603, "http_status");
    let good = cacheable(
        endpoint_era,
        &format!(r#""contents":[{}]"#, json!({"uri":NOTES,"text":"Look \u{fc}p.\n"})),
    );
    endpoint.set("resources/read", move |_| Reply::result(good.clone()));
    assert!(!read(&mut harness, NOTES).await.is_error());
});

#[tokio::test]
async fn an_endpoint_may_not_ask_for_input_instead_of_a_file() {
    const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;
    for harness_era in BOTH {
        let question = r#"{"q":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}}"#;
        for members in [format!(r#""inputRequests":{question}"#), r#""requestState":"s""#.to_owned()] {
            let result = format!(r#"{{"resultType":"input_required",{members}}}"#);
            let endpoint = Endpoint::modern()
                .skills(&[scout()])
                .on("resources/read", move |_| Reply::result(result.clone()));
            let (mut harness, _endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
            let answer = read(&mut harness, NOTES).await;
            assert_eq!(code(&answer), -32603, "{}", answer.text());
            assert!(harness.lines().iter().all(|line| line["method"] != "elicitation/create"));
        }
    }
}

four_eras!(
    a_skill_with_an_unusable_entry_is_refused_whole_and_the_rest_stay_usable,
    |harness_era, endpoint_era| async {
        let bad = |name: &str, change: fn(&mut Value)| {
            Skill::new(&format!("skill://arena/{name}")).file("notes.md", SECRET).change(change)
        };
        let cases = [
            ("outside", "is outside its folder"),
            ("traversal", "is outside its folder"),
            ("twice", "is listed twice"),
            ("headless", "own SKILL.md is not among its files"),
            ("respelled", "another spelling"),
            ("dynamic", "cannot be checked"),
            ("bare", "has no resources"),
            ("shouting", "has no digest"),
            ("weak", "has no digest"),
            ("misnamed", "not that of its folder"),
            ("huge", "more than 16777216 bytes"),
        ];
        let skills = [
            bad("outside", |e| e["resources"][1]["uri"] = json!("skill://arena/scout/notes.md")),
            bad("traversal", |e| {
                e["resources"][1]["uri"] = json!("skill://arena/traversal/../scout/SKILL.md")
            }),
            bad("twice", |e| {
                let mut again = e["resources"][1].clone();
                again["uri"] = json!("skill://arena/twice/%6eotes.md");
                e["resources"].as_array_mut().unwrap().push(again);
            }),
            bad("headless", |e| drop(e["resources"].as_array_mut().unwrap().remove(0))),
            bad("respelled", |e| e["resources"][0]["uri"] = json!("SKILL://arena/respelled/SKILL.md")),
            bad("dynamic", |e| e["resources"] = json!("dynamic")),
            bad("bare", |e| drop(e.as_object_mut().unwrap().remove("resources"))),
            bad("shouting", |e| {
                let digits =
                    e["resources"][1]["digest"].as_str().unwrap().replace("sha256:", "").to_uppercase();
                e["resources"][1]["digest"] = json!(format!("sha256:{digits}"));
            }),
            bad("weak", |e| e["resources"][1]["digest"] = json!("md5:d41d8cd98f00b204e9800998ecf8427e")),
            bad("misnamed", |e| e["frontmatter"]["name"] = json!("other")),
            bad("huge", |e| e["resources"][1]["size"] = json!(16 * 1024 * 1024)),
            scout(),
        ];
        let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era).skills(&skills)).await;
        let list = harness.ask("skills/list", "{}").await;
        assert_framed(&list, harness_era);
        assert_eq!(list.result()["skills"], json!([scout().entry]));
        for (name, why) in cases {
            let uri = format!("skill://arena/{name}/SKILL.md");
            let warning = format!("warning: skill \"{uri}\" is refused: ");
            harness.wait_stderr(&warning).await;
            let stderr = harness.stderr_text();
            let lines: Vec<_> = stderr.lines().filter(|line| line.contains(&warning)).collect();
            assert!(lines.len() == 1 && lines[0].contains(why), "{name}: {lines:?}");
            assert_refused(&harness.ask("skills/get", &about(&uri)).await, -32602, "skill_refused");
            for file in [uri, format!("skill://arena/{name}/notes.md"), format!("skill://arena/{name}/x")] {
                let answer = read(&mut harness, &file).await;
                assert_refused(&answer, -32602, "skill_refused");
                assert!(answer.text().contains(name), "{}", answer.text());
            }
        }
        assert_eq!(reads(&endpoint), 0);
        assert!(!read(&mut harness, SCOUT).await.is_error());
    }
);

#[tokio::test]
async fn a_skill_of_513_files_is_refused_and_one_of_512_is_not() {
    let many = |name: &str, count: usize| {
        (1..count).fold(Skill::new(&format!("skill://arena/{name}")), |skill, nth| {
            skill.file(&format!("{nth}.md"), "x")
        })
    };
    let skills = [many("full", 512), many("over", 513)];
    let (mut harness, _endpoint) = opened(Era::Modern, Endpoint::modern().skills(&skills)).await;
    let list = harness.ask("skills/list", "{}").await.result();
    assert_eq!(list["skills"].as_array().unwrap().len(), 1);
    assert_eq!(text(&read(&mut harness, "skill://arena/full/511.md").await), "x");
    assert_refused(&read(&mut harness, "skill://arena/over/1.md").await, -32602, "skill_refused");
}

four_eras!(one_file_in_two_entries_is_checked_against_both, |harness_era, endpoint_era| async {
    let nested = |outer: &str, agree: bool| {
        let inner = Skill::new(&format!("skill://arena/{outer}/inner")).file("i.md", "inner");
        let outer = Skill::new(&format!("skill://arena/{outer}")).change(|entry| {
            let mut files = inner.entry["resources"].as_array().unwrap().clone();
            if !agree {
                files[1]["size"] = json!(6);
            }
            entry["resources"].as_array_mut().unwrap().append(&mut files);
        });
        [outer, inner]
    };
    let skills = [nested("good", true), nested("bad", false)].concat();
    let (mut harness, _endpoint) = opened(harness_era, Endpoint::era(endpoint_era).skills(&skills)).await;
    assert_eq!(harness.ask("skills/list", "{}").await.result()["skills"].as_array().unwrap().len(), 2);
    for file in ["SKILL.md", "inner/SKILL.md", "inner/i.md"] {
        assert!(!read(&mut harness, &format!("skill://arena/good/{file}")).await.is_error(), "{file}");
        let answer = read(&mut harness, &format!("skill://arena/bad/{file}")).await;
        assert_refused(&answer, -32602, "skill_refused");
    }
});

four_eras!(
    what_no_skill_lists_is_refused_in_every_spelling_and_never_sent,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
        for uri in [
            "skill://arena/scout/secret.md",
            "skill://arena/scout",
            "skill://arena/scout/",
            "skill://arena/scout/notes.md?raw",
            "skill://arena/scout/notes.md#top",
            "skill://arena/scout/refs%2Fnotes.md",
            "skill://arena%2Fscout/notes.md",
            "skill://arena/scout/%2e%2e/secret.md",
            "skill://arena/scout/../../secret.md",
            "skill://arena/scout/..%5Csecret.md",
            "skill://arena/scout\\secret.md",
            "skill://arena/scout/notes.md%00",
            "skill://arena/scout/%ff",
            "skill://arena/SCOUT/notes.md",
            "SKILL://elsewhere/at/all",
            "skill:arena/scout/notes.md",
            "sk%69ll://arena/scout/notes.md",
            " skill://arena/scout/secret.md",
            "skill://index.json",
        ] {
            assert_refused(&read(&mut harness, uri).await, -32602, "unlisted_skill_file");
        }
        for params in [
            "{}",
            r#"{"uri":7}"#,
            r#"{"uri":["skill://arena/scout/secret.md"]}"#,
            r#"{"uri":"skill://a/\ud800"}"#,
        ] {
            assert_eq!(code(&harness.ask("resources/read", params).await), -32602, "{params}");
        }
        assert_eq!(reads(&endpoint), 0);
    }
);

four_eras!(
    a_listed_file_is_the_same_in_every_spelling_and_fetched_by_its_listed_one,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
        for uri in [
            "SKILL://arena/scout/notes.md",
            "skill://ARENA/scout/notes.md",
            "skill://arena/./scout/notes.md",
            "skill://arena/scout/x/../notes.md",
            "skill://arena/x/%2e%2e/scout/notes.md",
            "skill://arena/scout/%6eotes%2Emd",
            NOTES,
        ] {
            assert_eq!(text(&read(&mut harness, uri).await), "Look \u{fc}p.\n", "{uri}");
        }
        assert_eq!(reads(&endpoint), 1);
        assert_eq!(endpoint.arrived("resources/read", 0).await.subject(), NOTES);
    }
);

four_eras!(other_resources_are_forwarded_as_before, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = with_scout(harness_era, endpoint_era).await;
    for nth in 0..2 {
        assert_eq!(text(&read(&mut harness, "memo://one").await), "a memo");
        assert_eq!(reads(&endpoint), nth + 1);
    }
});

four_eras!(skills_of_other_schemes_are_kept_as_well, |harness_era, endpoint_era| async {
    for folder in ["https://x.example/skills/scout", "file:///srv/skills/scout", "scout+v1://h/scout"] {
        let skill = Skill::new(folder).file("notes.md", "notes");
        let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era).skills(&[skill])).await;
        assert_eq!(text(&read(&mut harness, &format!("{folder}/notes.md")).await), "notes");
        assert_eq!(text(&read(&mut harness, &format!("{folder}/./notes.md")).await), "notes");
        for trick in [
            "/secret",
            "",
            "/",
            "/x/%2e%2e/secret",
            "%2Fsecret",
            "%252fsecret",
            "/notes.md?x",
            "/.//notes.md",
        ] {
            let uri = format!("{folder}{trick}");
            assert_refused(&read(&mut harness, &uri).await, -32602, "unlisted_skill_file");
        }
        let shouted = folder.to_uppercase() + "/secret";
        assert_refused(&read(&mut harness, &shouted).await, -32602, "unlisted_skill_file");
        assert_eq!(reads(&endpoint), 1, "{folder}");
        // beside it the endpoint decides
        assert!(read(&mut harness, &format!("{folder}s/a")).await.is_error());
        assert_eq!(reads(&endpoint), 2, "{folder}");
    }
});

four_eras!(an_endpoint_without_skills_has_none, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    assert_eq!(code(&harness.ask("skills/list", "{}").await), -32601);
    assert_eq!(code(&harness.ask("skills/get", &about(SCOUT)).await), -32601);
    // such a URI is any other there
    assert!(read(&mut harness, SCOUT).await.is_error());
    assert_eq!(endpoint.arrived("resources/read", 0).await.subject(), SCOUT);
});

four_eras!(copies_outlive_the_session_they_were_fetched_in, |harness_era, endpoint_era| async {
    let endpoint: EndpointBuilder = Endpoint::era(endpoint_era).sessions().skills(&[scout()]);
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    let first = read(&mut harness, NOTES).await;
    endpoint.forget_session();
    assert!(!harness.call("echo", r#"{"text":"hi"}"#).await.is_error());
    assert_eq!(endpoint.requests_of("skills/list").len(), 2, "it was opened again");
    assert_eq!(read(&mut harness, NOTES).await.result_raw(), first.result_raw());
    assert_eq!(reads(&endpoint), 1);
    // and a session that is gone when a file is first asked for is opened again
    endpoint.forget_session();
    assert!(!read(&mut harness, LOGO).await.is_error());
});

four_eras!(a_file_may_fill_the_largest_message_and_no_more, |harness_era, endpoint_era| async {
    const LIMIT: usize = 300_000;
    let skill = Skill::new("skill://arena/scout")
        .file("fits.md", &"x".repeat(LIMIT - 600))
        .file("over.md", &"x".repeat(LIMIT))
        .blob("fits.bin", &vec![7; (LIMIT - 600) / 4 * 3])
        .blob("over.bin", &vec![7; LIMIT / 4 * 3]);
    let endpoint = Endpoint::era(endpoint_era).skills(&[skill]);
    let args = ["--max-message-bytes", &LIMIT.to_string()];
    let (mut harness, endpoint) = opened_with(harness_era, endpoint, "{}", &args).await;
    for name in ["md", "bin"] {
        for _ in 0..2 {
            assert!(!read(&mut harness, &format!("skill://arena/scout/fits.{name}")).await.is_error());
        }
        let answer = read(&mut harness, &format!("skill://arena/scout/over.{name}")).await;
        assert_refused(&answer, -32603, "too_large");
    }
    assert_eq!(reads(&endpoint), 4);
});

#[tokio::test]
async fn a_large_file_is_kept_and_served() {
    let bytes: Vec<u8> = (0..4 * 1024 * 1024_u32).map(|at| (at % 251) as u8).collect();
    let skill = Skill::new("skill://arena/scout").blob("big.bin", &bytes);
    let (mut harness, endpoint) = opened(Era::Legacy, Endpoint::modern().skills(&[skill])).await;
    let uri = "skill://arena/scout/big.bin";
    let first = read(&mut harness, uri).await.result_raw();
    assert!(first.len() > bytes.len());
    assert!(read(&mut harness, uri).await.result_raw() == first);
    assert_eq!(reads(&endpoint), 1);
}

#[tokio::test]
async fn a_question_of_a_legacy_endpoint_while_a_file_is_read_reaches_nobody() {
    for harness_era in BOTH {
        let question = r#"{"message":"?","requestedSchema":{"type":"object","properties":{}}}"#;
        let content = json!({"uri":NOTES,"text":"Look \u{fc}p.\n"});
        let endpoint = Endpoint::legacy().skills(&[scout()]).on("resources/read", move |_| {
            let content = content.clone();
            let script = Script::new().request(r#""q""#, "elicitation/create", question);
            Reply::sse(script.posted(r#""q""#, move |answer| {
                assert_eq!(answer["result"]["action"], "cancel", "{answer}");
                Script::new().result(format!(r#"{{"contents":[{content}]}}"#))
            }))
        });
        let forms = r#"{"elicitation":{"form":{}}}"#;
        let (mut harness, _endpoint) = opened_with(harness_era, endpoint, forms, &[]).await;
        assert_eq!(text(&read(&mut harness, NOTES).await), "Look \u{fc}p.\n");
        assert!(harness.lines().iter().all(|line| line["method"] != "elicitation/create"));
    }
}

four_eras!(a_fetch_that_hangs_does_not_keep_the_program, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).skills(&[scout()]).on("resources/read", |_| Reply::hang());
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    let id = harness.request("resources/read", &about(NOTES)).await;
    let order = endpoint.arrived("resources/read", 0).await.order;
    harness.close_stdin();
    assert_refused(&harness.answer(id).await, -32603, "leaving");
    let (status, took) = harness.wait_exit().await;
    assert!(status == 0 && took.as_secs() < 3, "{status} after {took:?}");
    endpoint.client_closed(order).await;
});
