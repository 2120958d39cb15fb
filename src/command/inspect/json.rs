//! The page for a program: one JSON object, everything whole, nothing in it that a reader cannot see.

use super::{Sight, described};
use crate::surface::findings::Weight;
use crate::surface::{Item, Kind, Skills, layout};
use crate::wire::json::quote;

/// One object and a line break.
pub(super) fn page(sight: &Sight<'_>) -> String {
    let surface = sight.surface;
    let declared = match &surface.declared {
        Some(hash) => {
            format!("{{\"key\":{},\"value\":{}}}", quote(&hash.key), quote(&hash.value))
        }
        None => "null".into(),
    };
    let mut members = vec![
        ("url", quote(&sight.config.url.to_string())),
        ("withToken", sight.config.token.is_some().to_string()),
        ("computedHash", quote(&surface.hash().to_string())),
        ("declaredHash", declared),
        ("instructions", surface.instructions.clone()),
    ];
    for kind in Kind::ALL {
        members.push((kind.member(), array(surface.list(kind).iter().map(item))));
    }
    let refused = sight.skills.into_iter().flat_map(Skills::refused);
    let refused = refused.map(|(uri, why)| format!("{{\"uri\":{},\"why\":{}}}", quote(uri), quote(why)));
    members.push(("refusedSkills", array(refused)));
    members.push(("findings", array(sight.findings.iter().map(finding))));
    let matches = sight.config.pin.hashes.iter().map(|expected| {
        let (text, of) = described(expected);
        format!(
            "{{\"expected\":{},\"of\":\"{of}\",\"matches\":{}}}",
            quote(&text),
            sight.surface.has(expected)
        )
    });
    members.push(("matches", array(matches)));
    if let Some((lock, difference)) = &sight.difference {
        members.push(("lock", quote(&lock.file)));
        members.push(("difference", difference.to_json()));
    }
    let members: Vec<_> = members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let mut out = String::new();
    layout::push_lines(&format!("{{{}}}", members.join(",")), 0, &mut out);
    out.push('\n');
    out
}

fn array(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

fn item(item: &Item) -> String {
    let Item { name, text } = item;
    let (name, digest) = (quote(name), item.digest());
    format!("{{\"name\":{name},\"digest\":\"{digest}\",\"bytes\":{},\"item\":{text}}}", text.len())
}

fn finding(finding: &crate::surface::Finding) -> String {
    let weight = match finding.weight() {
        Weight::Warning => "warning",
        Weight::Note => "note",
    };
    format!(
        "{{\"id\":{},\"weight\":\"{weight}\",\"subject\":{},\"place\":{},\"what\":{}}}",
        quote(finding.id),
        quote(&finding.subject),
        quote(&finding.place),
        quote(&finding.what)
    )
}
