//! Where the real program is: beside this example, built by the same cargo in the same profile.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::Result;

/// Builds mcp-hasp where that is needed, and says where it is.
pub(crate) async fn mcp_hasp() -> Result<PathBuf> {
    // <target>/<profile>/examples/demo
    let example = std::env::current_exe()?;
    let profile_dir =
        example.parent().and_then(Path::parent).ok_or("this example lies in no target folder")?;
    let target_dir = profile_dir.parent().ok_or("this example lies in no target folder")?;
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => return Err("the name of the profile is not text".into()),
    };

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        // together with the example, which is there already: cargo then settles on the features of the
        // dependencies that it has just built, instead of building all of them a second time
        .args(["build", "--quiet", "--locked", "--bin", "mcp-hasp", "--example", "demo"])
        .args(["--profile", profile, "--target-dir"])
        .arg(target_dir)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    // `cargo run` describes this package in the environment; a build script that watches those variables
    // would take them for a change and compile its crate again, at every run
    for (name, _) in std::env::vars_os() {
        let described = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
                .iter()
                .any(|start| name.starts_with(start))
        });
        if described {
            command.env_remove(name);
        }
    }
    let status = tokio::time::timeout(BUILD_LIMIT, command.status())
        .await
        .map_err(|_| "building mcp-hasp took more than ten minutes")?
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if !status.success() {
        return Err("mcp-hasp could not be built; what cargo said is above".into());
    }

    let binary = profile_dir.join(format!("mcp-hasp{}", std::env::consts::EXE_SUFFIX));
    if !binary.is_file() {
        return Err(format!("cargo built mcp-hasp, but it is not at {}", binary.display()).into());
    }
    Ok(binary)
}

const BUILD_LIMIT: Duration = Duration::from_secs(600);
