//! Writes findings as workflow commands of GitHub Actions, which shows them beside the lines of a pull request.

use kube_manifest::{Finding, Severity};

/// Returns a line for each error and warning: `::error file=F,line=L,col=C::MESSAGE`. Notes are left out, because a pull
/// request shows only the first ten.
pub(super) fn lines(findings: &[Finding]) -> String {
    let shown = findings.iter().filter(|f| f.severity != Severity::Note);
    shown.map(|finding| line(finding) + "\n").collect()
}

fn line(finding: &Finding) -> String {
    let mut place = format!("file={}", property(&finding.file));
    if let Some(at) = finding.at {
        place += &format!(",line={},col={}", at.line, at.column);
    }
    let message = data(&finding.message());
    format!("::{} {place}::{message}", finding.severity.word())
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use kube_manifest::Position;

    use super::*;

    #[test]
    fn a_file_cannot_end_its_command() {
        let finding = Finding {
            severity: Severity::Warning,
            file: "a,line=1::b%\n.yaml".to_owned(),
            at: Some(Position { line: 5, column: 3 }),
            path: "spec.a".to_owned(),
            problem: "100% wrong".to_owned(),
            remedy: String::new(),
        };
        assert_eq!(
            lines(&[finding]),
            "::warning file=a%2Cline=1%3A%3Ab%25%0A.yaml,line=5,col=3::spec.a: 100%25 wrong\n"
        );
    }
}
