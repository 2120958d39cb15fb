//! Parse, run, return one code.

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use mcp_hasp::cli::Cli;
use mcp_hasp::failure::Exit;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::disallowed_methods, reason = "here the environment becomes an argument")]
fn main() -> ExitCode {
    std::panic::set_hook(Box::new(end_of_a_panic));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    mcp_hasp::run(cli, &|name| std::env::var(name).ok()).into()
}

/// `--help` and `--version` are no errors; everything else is one line and code 64.
fn explain(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return if error.print().is_ok() { Exit::Done.into() } else { Exit::Unexpected.into() };
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    // Where it goes on below, those are names of options.
    let below = text.lines().skip(1).take_while(|line| first.ends_with(':') && line.starts_with("  "));
    let below: String = below.map(|line| format!(" {}", line.trim())).collect();
    let what = format!("{}{below}", first.strip_prefix("error: ").unwrap_or(first).trim_end_matches('.'));
    let stray = error.kind() == ErrorKind::UnknownArgument && !what.contains("'-");
    if stray {
        // The word is not repeated: it may be the end of a header's secret value.
        say(
            "error: a word that belongs to no option; was a value with blanks split? quote it, as in --header 'Name: value'",
        );
    } else {
        say(&format!("error: {what}; see mcp-hasp --help"));
    }
    Exit::Usage.into()
}

/// A state nobody foresaw: one line, no payload (it could hold outside text or a secret), and out.
/// Nothing more may pass, so no task is left to go on.
#[expect(clippy::exit, reason = "the end of a panic")]
fn end_of_a_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
    say(&format!(
        "error: internal failure{place}; this is a fault of mcp-hasp, please report it with this line"
    ));
    std::process::exit(Exit::Unexpected as i32);
}

#[expect(clippy::disallowed_methods, reason = "before there is a report, and after it is of no use")]
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "mcp-hasp: {}", mcp_hasp::report::visible(line, 600));
}
