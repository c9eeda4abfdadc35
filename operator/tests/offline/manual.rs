//! `training-operator completions` and `training-operator man`.

use training_operator_testing::program::{empty_directory, run};

const COMMANDS: [&str; 15] = [
    "new",
    "render",
    "validate",
    "snapshot",
    "diff",
    "convert",
    "doctor",
    "explain",
    "crd",
    "new-kind",
    "smoke-test",
    "completions",
    "man",
    "local",
    "remote-shell",
];

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = run(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{shell}");
        for command in COMMANDS {
            assert!(
                run.stdout.contains(command),
                "{shell} does not complete {command}"
            );
        }
    }
    let typo = run(&["completions", "bsh"]);
    assert_eq!(typo.code, Some(2));
    assert!(typo.stderr.contains("'bash'"), "{}", typo.stderr);
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let printed = run(&["man"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    assert!(printed.stdout.contains(".TH training"), "{}", printed.stdout);

    let directory = empty_directory("manual").join("man1");
    let written = run(&["man", "--dir", directory.to_str().unwrap()]);
    assert_eq!(written.code, Some(0), "{written:?}");
    for command in COMMANDS {
        let page = directory.join(format!("training-operator-{command}.1"));
        assert!(
            std::fs::read_to_string(&page).unwrap().contains(command),
            "{}",
            page.display()
        );
    }
    for verb in ["list", "status", "logs", "events", "report", "restart", "wait"] {
        let page = directory.join(format!("kubectl-training-{verb}.1"));
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains(&format!("  kubectl training {verb}")), "{page}");
        assert!(!page.contains(&format!("training-operator {verb}")), "{page}");
    }
    let page = std::fs::read_to_string(directory.join("kubectl-training.1")).unwrap();
    assert!(page.contains("kubectl\\-training\\-status(1)"), "{page}");
}
