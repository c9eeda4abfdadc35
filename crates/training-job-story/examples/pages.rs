//! Writes the pages of the tests' stories into a directory, to look at them in a browser.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../tests/fixtures/mod.rs"]
mod fixtures;

use std::error::Error;
use std::path::PathBuf;

use training_job_story::html;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: pages DIR")?);
    std::fs::create_dir_all(&dir)?;
    for state in fixtures::STATES {
        std::fs::write(dir.join(format!("{state}.html")), html(&fixtures::story(state)))?;
    }
    Ok(())
}
