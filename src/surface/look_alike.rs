//! Names that a person cannot tell apart. A small table of our own, not the whole of Unicode's.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Letters of other scripts that look like a Latin one, in pairs: the letter, then what it looks like.
const CYRILLIC: &str = "аaАAВBсcСCԁdеeЕEһhНHіiІIїiЇIјjЈJкkКKӏlӀlМMоoОOрpРPԛqԚQѕsЅSТTтtуyУYѵvԝwԜWхxХXгrпn";
const GREEK: &str = "αaΑAΒBΕEηnΗHιiΙIκkΚKΜMνvΝNοoΟOρpΡPτtΤTυuΥYχxΧXΖZγyωwϲcϹC";
/// Letters of other kinds: Latin ones without their dot or hook, Armenian, Cherokee, small capitals.
const OTHERS: &str = "ıiɩiɑaɡgʟlᴏoᴄcᴜuᴠvᴡwᴢzօoսuսuոnհhցgՕOᎪAᏴBᏟCᎬEᎻHᎫJᏦKᏞLᎷMᏢPᎡRᏚSᎢTᏙVᏃZ";

/// The Latin letter that a letter looks like.
pub(super) fn latin(character: char) -> char {
    let code = u32::from(character);
    match code {
        0..=0x7f => character,
        // Full-width forms stand in the order of ASCII.
        0xff01..=0xff5e => char::from_u32(code - 0xff01 + 0x21).unwrap_or(character),
        // Mathematical letters: 13 alphabets of capitals and small ones, then 5 rows of digits.
        0x1d400..=0x1d6a3 => nth(b'A', b'a', (code - 0x1d400) % 52),
        0x1d7ce..=0x1d7ff => char::from_u32(0x30 + (code - 0x1d7ce) % 10).unwrap_or(character),
        // Most of what is written has no look-alike in the tables.
        0x80..=0x130 | 0x2000.. => character,
        _ => PARTNERS.get(&character).copied().unwrap_or(character),
    }
}

fn nth(capital: u8, small: u8, at: u32) -> char {
    let (first, at) = if at < 26 { (capital, at) } else { (small, at - 26) };
    char::from_u32(u32::from(first) + at).unwrap_or('?')
}

/// The tables, made for looking up: all of a long Cyrillic text is looked up.
static PARTNERS: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
    let all = || [CYRILLIC, GREEK, OTHERS].into_iter().flat_map(str::chars);
    all().step_by(2).zip(all().skip(1).step_by(2)).collect()
});

/// What is left of a name when it is read without care. Names that share one of them look alike.
pub(super) fn keys(name: &str) -> [String; 2] {
    let letters = || name.chars().filter(|character| !is_unseen(*character)).map(latin);
    let separated = |character: char| match character {
        '-' | '.' | ' ' | '‐'..='―' => '_',
        _ => character,
    };
    let read: String = letters().map(separated).flat_map(char::to_lowercase).collect();
    let digits = letters().map(|character| match character {
        '0' => 'o',
        '1' | 'I' | '|' => 'l',
        other => other,
    });
    let seen: String = digits.map(separated).flat_map(char::to_lowercase).collect();
    [format!("read {read}"), format!("seen {}", seen.replace("rn", "m").replace("vv", "w"))]
}

fn is_unseen(character: char) -> bool {
    matches!(u32::from(character), 0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfe00..=0xfe0f
        | 0xfeff | 0xe0000..=0xe01ef)
}

/// The scripts whose letters are mistaken for one another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
    Armenian,
    Cherokee,
    FullWidth,
    Mathematical,
}

fn script(character: char) -> Option<Script> {
    match u32::from(character) {
        0x41..=0x5a | 0x61..=0x7a | 0xc0..=0xd6 | 0xd8..=0xf6 | 0xf8..=0x24f | 0x1e00..=0x1eff => {
            Some(Script::Latin)
        }
        0x370..=0x3ff | 0x1f00..=0x1fff => Some(Script::Greek),
        0x400..=0x52f => Some(Script::Cyrillic),
        0x531..=0x587 => Some(Script::Armenian),
        0x13a0..=0x13fd => Some(Script::Cherokee),
        0xff21..=0xff3a | 0xff41..=0xff5a => Some(Script::FullWidth),
        0x1d400..=0x1d7ff => Some(Script::Mathematical),
        _ => None,
    }
}

/// The first word of a name that has letters of more than one of these scripts.
pub(super) fn mixed_word(name: &str) -> Option<&str> {
    if name.is_ascii() {
        return None;
    }
    name.split(|character: char| !character.is_alphanumeric()).find(|word| {
        let mut scripts = word.chars().filter_map(script);
        scripts.next().is_some_and(|first| scripts.any(|other| other != first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        keys(one).iter().zip(keys(other)).any(|(one, other)| *one == other)
    }

    #[test]
    fn the_tables_are_pairs() {
        for pairs in [CYRILLIC, GREEK, OTHERS] {
            let all: Vec<_> = pairs.chars().collect();
            assert!(all.chunks(2).all(|pair| !pair[0].is_ascii() && pair[1].is_ascii()), "{pairs}");
        }
    }

    #[test]
    fn names_that_look_alike_share_a_key() {
        for (one, other) in [
            ("get_item", "get-item"),
            ("getItem", "GetItem"),
            ("pay", "pаy"),
            ("list", "1ist"),
            ("Il", "ll"),
            ("go", "g0"),
            ("ｐａｙ", "pay"),
            ("\u{1d429}ay", "pay"),
            ("pa\u{200b}y", "pay"),
            ("turn", "tum"),
        ] {
            assert!(alike(one, other), "{one} {other}");
        }
        for (one, other) in
            [("mail", "mall"), ("get", "got"), ("step1", "step2"), ("a_b", "ab"), ("größe", "grösse")]
        {
            assert!(!alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_word_of_two_scripts_is_found() {
        assert_eq!(mixed_word("get_pаy"), Some("pаy"));
        assert_eq!(mixed_word("ｐay"), Some("ｐay"));
        for fine in ["get_имя", "größe", "東京tower", "µs", "оплата", "λ"] {
            assert_eq!(mixed_word(fine), None, "{fine}");
        }
    }
}
