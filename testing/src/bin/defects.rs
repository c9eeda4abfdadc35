//! Plants the Go operator's defects one by one, and checks that tests fail: `make defects`.

#![allow(clippy::unwrap_used, reason = "a tool for developers")]

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use training_job_testing::defects::{Bed, Catalogue, Plant, TestName, Verdict, repository};

fn main() -> ExitCode {
    let beginnings: Vec<String> = env::args().skip(1).collect();
    let catalogue = Catalogue::read();
    let is_meant = |plant: &&Plant| {
        beginnings.is_empty() || beginnings.iter().any(|b| plant.name.starts_with(b.as_str()))
    };
    let plants: Vec<&Plant> = catalogue.plants.iter().filter(is_meant).collect();
    if plants.is_empty() {
        eprintln!("no patch in tests/defects has a name that begins so");
        return ExitCode::from(2);
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from);
    let bed = Bed::new(&target.join("defects"));
    bed.clear();
    println!(
        "without a plant: {} tests are to pass …",
        plants.iter().map(|p| p.caught_by.len()).sum::<usize>()
    );
    match bed.run(plants.iter().flat_map(|plant| &plant.caught_by)) {
        Verdict::Failed(failed) if failed.is_empty() => {}
        Verdict::Failed(failed) => {
            failed
                .iter()
                .for_each(|test| eprintln!("{test} fails without a plant"));
            return ExitCode::FAILURE;
        }
        Verdict::NotRun(output) => {
            eprintln!("{output}");
            return ExitCode::FAILURE;
        }
    }
    let mut alive = 0;
    for (n, plant) in (1..).zip(&plants) {
        let result = look(&bed, plant);
        let caught = result.is_ok();
        alive += u32::from(!caught);
        let (word, lines) = if caught {
            ("caught", result.unwrap())
        } else {
            ("ALIVE ", result.unwrap_err())
        };
        println!("{n:>2}/{} {word} {:<40} {lines}", plants.len(), plant.name);
    }
    println!("{} planted, {alive} alive", plants.len());
    if alive == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns the tests that detected the plant, or an error if not all of them did.
fn look(bed: &Bed, plant: &Plant) -> Result<String, String> {
    bed.plant(plant)?;
    let verdict = bed.run(&plant.caught_by);
    bed.weed(plant);
    match verdict {
        Verdict::NotRun(output) => Err(output),
        Verdict::Failed(failed) => {
            let names = |tests: &mut dyn Iterator<Item = &TestName>| {
                tests.map(|test| test.name.clone()).collect::<Vec<_>>().join(", ")
            };
            let mut passed = plant.caught_by.iter().filter(|test| !failed.contains(*test));
            let passed = names(&mut passed);
            if passed.is_empty() {
                Ok(names(&mut failed.iter()))
            } else {
                Err(format!("these passed: {passed}"))
            }
        }
    }
}
