//! What pinning costs: reading a surface of 1,000 tools (the reference), hashing and comparing it, looking through it, and
//! checking the pinned hash of a result. Prints milliseconds and microseconds; nothing is asserted.
//!
//! `cargo bench --bench surface`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a program for a person at a terminal"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_hasp::surface::{DeclaredHash, Difference, Kind, List, Observed, Surface, findings};
use mcp_hasp::wire::{self, Era};

fn main() {
    let message = tools(1_000);
    println!("tools/list of 1,000 tools, {} kB", message.len() / 1000);
    let reading = median(41, || read(&message));
    line("reading it", reading, reading);
    let observed = read(&message);
    let locked = Surface::of(&observed).unwrap();
    let hashing = median(41, || Surface::of(&observed).unwrap());
    line("canonical form and hash", hashing, reading);
    let both = median(41, || {
        let surface = Surface::of(&observed).unwrap();
        assert!(Difference::between(&locked, &surface).is_empty());
        surface
    });
    line("the same, compared with a lock", both, reading);
    line("findings", median(21, || findings(&locked)), reading);

    let deep = deep(500, 8_000_000);
    println!("one tool of {} kB, 500 levels deep, members in reverse order", deep.len() / 1000);
    let reading = median(3, || read(&deep));
    line("reading it", reading, reading);
    let observed = read(&deep);
    line("canonical form and hash", median(3, || Surface::of(&observed).unwrap()), reading);
    let surface = Surface::of(&observed).unwrap();
    line("findings", median(3, || findings(&surface)), reading);

    println!("the pinned hash of a result");
    let pinned = DeclaredHash {
        key: "com.example/surfaceHash".into(),
        value: "sha256:".to_owned() + &"0f".repeat(32),
    };
    for (what, size, many) in [("of 300 bytes", 100, 100_000), ("of 1 MiB", 1 << 20, 1_000)] {
        let text = "x".repeat(size);
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"_meta":{{"{}":"{}","other":1}}}}}}"#,
            pinned.key, pinned.value
        );
        let message = wire::parse(message.into_bytes()).unwrap();
        let all = median(11, || {
            for _ in 0..many {
                black_box(pinned.check(&black_box(&message).meta())).unwrap();
            }
        });
        println!("  {what:<34} {:>9.3} µs", all.as_secs_f64() * 1e6 / f64::from(many));
    }
}

fn line(what: &str, time: Duration, reading: Duration) {
    let ratio = time.as_secs_f64() / reading.as_secs_f64();
    println!("  {what:<34} {:>9.3} ms   {ratio:.2} × reading", time.as_secs_f64() * 1e3);
}

fn median<T>(rounds: usize, mut work: impl FnMut() -> T) -> Duration {
    let mut times: Vec<_> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            black_box(work());
            begun.elapsed()
        })
        .collect();
    times.sort();
    times.get(rounds / 2).copied().unwrap_or_default()
}

/// As it is done at start: the message through the one door, then the list.
fn read(message: &str) -> Observed {
    let message = wire::parse(message.as_bytes().to_vec()).unwrap();
    let mut list = List::new(Kind::Tools);
    list.add_page(Bytes::from(message.payload().text().to_owned())).unwrap();
    Observed::new(Era::Modern, Bytes::from_static(br#"{"instructions":"Call look first."}"#), [list])
}

/// A `tools/list` answer as servers write it: members in their own order, escapes, some numbers.
fn tools(count: usize) -> String {
    let mut text = String::from(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":["#);
    for n in 0..count {
        let comma = if n > 0 { "," } else { "" };
        let words = "Reads the state of one place and of what is near it.\\nCosts nothing. ".repeat(4);
        let mut properties = String::new();
        for (at, name) in ["place", "range", "kinds", "since", "filter", "order"].iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(
                properties,
                r#"{comma}"{name}":{{"type":"integer","description":"The {name}, \u00fcber 1.","minimum":1.0,"maximum":{n},"default":{at}}}"#
            );
        }
        let _ = write!(
            text,
            r#"{comma}{{"name":"tool_{n}","title":"Tool {n}","description":"{words}","inputSchema":{{"type":"object","properties":{{{properties}}},"required":["place","range"],"additionalProperties":false}},"annotations":{{"readOnlyHint":true,"openWorldHint":false}},"_meta":{{"com.example/rank":{n}}}}}"#
        );
    }
    text.push_str("]}}");
    text
}

/// One tool whose members stand in the worst order at each level.
fn deep(levels: usize, size: usize) -> String {
    let open = r#"{"z":0,"a":"#.repeat(levels);
    let numbers = vec!["7.5"; size / 4].join(",");
    let close = "}".repeat(levels);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"t","x":{open}[{numbers}]{close}}}]}}}}"#
    )
}
