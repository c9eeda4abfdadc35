//! Finds uses of SSH in a launcher's command. The pods of an MPIJob get no keys, and workers need no sshd, because
//! `mpirun` starts processes by the exec API.

mod script;

pub use script::{Command, commands};
use script::{base, is_assignment};

/// Programs that connect to other hosts by SSH.
const CLIENTS: [&str; 10] = [
    "ssh",
    "scp",
    "sftp",
    "sshpass",
    "ssh-keyscan",
    "ssh-copy-id",
    "autossh",
    "pdsh",
    "pssh",
    "parallel-ssh",
];

/// Programs that resolve a host's name or connect to it.
const RESOLVERS: [&str; 8] = [
    "nslookup", "host", "dig", "ping", "getent", "nc", "ncat", "telnet",
];

/// Parameters of Open MPI that name the remote shell, and those that hold its arguments.
const AGENTS: [&str; 2] = ["plm_rsh_agent", "plm_ssh_agent"];
const ARGUMENTS: [&str; 2] = ["plm_rsh_args", "plm_ssh_args"];

/// Options of Hydra, the launcher of Intel MPI and MPICH, that name the remote shell.
const HYDRA_OPTIONS: [&str; 4] = ["bootstrap", "bootstrap-exec", "launcher", "launcher-exec"];

/// Variables of Hydra that name the remote shell, and those that hold its arguments.
const HYDRA_AGENTS: [&str; 5] = [
    "I_MPI_HYDRA_BOOTSTRAP",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
    "HYDRA_BOOTSTRAP",
    "HYDRA_LAUNCHER",
    "HYDRA_LAUNCHER_EXEC",
];
const HYDRA_ARGUMENTS: [&str; 3] = [
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
    "HYDRA_LAUNCH_EXTRA_ARGS",
    "HYDRA_LAUNCHER_EXTRA_ARGS",
];

/// A use of SSH in a launcher's command, which fails or waits forever in an MPIJob of this operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SshUse {
    /// A call of a client of SSH.
    Call,
    /// A wait for the name or the port of a worker.
    Wait,
    /// SSH as the remote shell of `mpirun`.
    Agent,
    /// Arguments of SSH for the remote shell of `mpirun`.
    Arguments,
    /// The DNS name of a worker.
    Host,
}

impl SshUse {
    /// Returns the problem and the remedy. `text` is the part of the command that shows the use.
    pub fn describe(self, text: &str) -> (String, &'static str) {
        let without = "the operator gives pods no keys and starts no sshd in them";
        match self {
            Self::Call => (
                format!("calls {text}, but {without}"),
                "remove the call: no wait for the workers is needed, and mpirun starts their processes by exec",
            ),
            Self::Wait => (
                format!(
                    "waits with {text} for the name or a port of a worker, but workers have no DNS names and no sshd"
                ),
                "remove the wait: mpirun reaches the workers through the API server once they run",
            ),
            Self::Agent => (
                format!("{text} makes SSH the remote shell of mpirun, but {without}"),
                "remove the setting: the operator sets the remote shell to /etc/mpi/kubexec.sh",
            ),
            Self::Arguments => (
                format!(
                    "{text} sets arguments of SSH, but /etc/mpi/kubexec.sh takes its first argument for the worker"
                ),
                "remove the setting",
            ),
            Self::Host => (
                format!("{text} has the DNS name of a worker, but workers have none"),
                "use the names of the workers' pods, as in /etc/mpi/hostfile",
            ),
        }
    }
}

/// Returns the uses of SSH in the words of a container's command and arguments, each with the text that shows it.
pub fn uses(words: &[&str]) -> Vec<(SshUse, String)> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let text = words.join(" ");
    let is_about_workers = text.contains("worker") || text.contains("/etc/mpi/");
    let mut found = Vec::new();
    let mut all = vec![words];
    while let Some(words) = all.pop() {
        if let Some(script) = script::of_shell(&words) {
            all.extend(commands(script).into_iter().rev().map(|command| command.words));
        } else {
            find_in_command(&words, is_about_workers, &mut found);
        }
    }
    let mut seen = Vec::new();
    found.retain(|(what, _)| {
        !seen.contains(what) && {
            seen.push(*what);
            true
        }
    });
    found
}

/// Returns the use of SSH in a variable of the launcher's environment.
pub fn use_in_variable(name: &str, value: &str) -> Option<SshUse> {
    let parameter = ["OMPI_MCA_", "PRTE_MCA_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    if parameter.is_some_and(|name| ARGUMENTS.contains(&name)) || HYDRA_ARGUMENTS.contains(&name) {
        return Some(SshUse::Arguments);
    }
    let is_agent = parameter.is_some_and(|name| AGENTS.contains(&name)) || HYDRA_AGENTS.contains(&name);
    (is_agent && is_ssh(value)).then_some(SshUse::Agent)
}

fn find_in_command(words: &[String], is_about_workers: bool, found: &mut Vec<(SshUse, String)>) {
    let program = script::program(words);
    let name = program.and_then(|at| words.get(at)).map_or("", |word| base(word));
    let arguments = program.map_or(&[][..], |at| words.get(at + 1..).unwrap_or_default());
    let is_port_check = words.iter().any(|word| word.contains("/dev/tcp/"));
    if CLIENTS.contains(&name) && host(arguments).is_some_and(|host| !is_elsewhere(host)) {
        found.push((SshUse::Call, name.to_owned()));
    } else if is_port_check || is_about_workers && RESOLVERS.contains(&name) && names_worker(arguments) {
        found.push((
            SshUse::Wait,
            if is_port_check { "/dev/tcp" } else { name }.to_owned(),
        ));
    }
    // A variable may hold options of mpirun, or the call of ssh.
    let tokens: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
    let is_launcher = name.starts_with("mpirun") || name.starts_with("mpiexec");
    for (n, token) in tokens.iter().enumerate() {
        let next = tokens.get(n + 1).copied().unwrap_or_default();
        let option = token.trim_start_matches('-');
        let (option, value) = option.split_once('=').unwrap_or((option, next));
        let is_hydra = is_launcher && token.starts_with('-') && HYDRA_OPTIONS.contains(&option);
        if (is_hydra || AGENTS.contains(token)) && is_ssh(value) {
            let text = match token.contains('=') {
                true => (*token).to_owned(),
                false => format!("{token} {value}"),
            };
            found.push((SshUse::Agent, text));
        } else if ARGUMENTS.contains(token) || name == "horovodrun" && option.starts_with("ssh-") {
            found.push((SshUse::Arguments, (*token).to_owned()));
        } else if is_worker_name(token) && (is_launcher || name == "horovodrun") {
            found.push((SshUse::Host, (*token).to_owned()));
        }
    }
    for (name, value) in words
        .iter()
        .filter(|word| is_assignment(word))
        .filter_map(|word| word.split_once('='))
    {
        if let Some(what) = use_in_variable(name, value) {
            found.push((what, format!("{name}={value}")));
        } else if !name.starts_with("GIT_") && value.contains(' ') && is_ssh(value) {
            found.push((SshUse::Call, format!("{name}={value}")));
        }
    }
}

/// Returns true if the command begins with the program ssh.
fn is_ssh(command: &str) -> bool {
    command
        .split_whitespace()
        .next()
        .is_some_and(|word| base(word) == "ssh")
}

/// Options of SSH's clients without a value.
const FLAGS: &str = "46AaCfGgHKkMNnqsTvXxYy";

/// Returns the host to which a client of SSH connects: the first argument that is neither an option nor its value.
fn host(arguments: &[String]) -> Option<&str> {
    let mut is_value = false;
    arguments.iter().map(String::as_str).find(|word| {
        let is_option = word.starts_with('-');
        let is_host = !is_option && !is_value;
        is_value = is_option && word.len() == 2 && !word.ends_with(|c| FLAGS.contains(c));
        is_host
    })
}

/// Returns true for a host outside the job, such as `git@github.com`.
fn is_elsewhere(host: &str) -> bool {
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let is_literal = host
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
    is_literal && host.contains('.') && host.contains(char::is_alphabetic) && !host.contains("worker")
}

fn names_worker(arguments: &[String]) -> bool {
    arguments
        .iter()
        .any(|word| word.contains('$') || word.contains("worker"))
}

/// Returns true if a list of hosts has a name such as `job-worker-0.job`.
fn is_worker_name(token: &str) -> bool {
    let mut parts = token.split("-worker-").skip(1);
    !token.contains('/')
        && parts.any(|rest| {
            let index = rest.split('.').next().unwrap_or_default();
            rest.len() > index.len() && !index.is_empty() && !index.contains([',', ':'])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(script: &str) -> Vec<SshUse> {
        uses(&["bash", "-c", script])
            .into_iter()
            .map(|(what, _)| what)
            .collect()
    }

    #[test]
    fn a_call_of_ssh_is_found_wherever_the_shell_runs_it() {
        for script in [
            "ssh worker hostname",
            "for h in $(cut -d' ' -f1 /etc/mpi/hostfile); do until ssh -p 2222 $h true; do sleep 1; done; done",
            "while ! timeout 5 /usr/bin/ssh $h exit; do sleep 1; done",
            "ok=$(ssh $h nproc)",
            "[ \"$(ssh $h nproc)\" = 8 ] || exit 1",
            "n=`ssh $h nproc`",
            "cat hosts | xargs -n 1 -I{} ssh {} true",
            "check() { ssh -q \"$1\" true; }; check a",
            "sudo -u mpiuser ssh -q $h true",
            "su - mpiuser -c 'ssh $h true'",
            "bash -lc \"sleep 1 && ssh $h true\"",
            "eval \"ssh $h true\"",
            "set -ex # ssh_config is ready\nscp a $h:/tmp",
            "SSH=\"ssh -p 2222\"; $SSH $h true",
            "ssh-keyscan -p 2222 $h >> ~/.ssh/known_hosts",
            "(ssh $h true) 2>&1 | tee log",
            "a \\\n  && ssh $h true",
            "ssh -o StrictHostKeyChecking=no $h python train.py",
        ] {
            assert_eq!(of(script), [SshUse::Call], "{script}");
        }
        assert_eq!(
            uses(&["/usr/bin/ssh", "host", "true"]),
            [(SshUse::Call, "ssh".to_owned())]
        );
    }

    #[test]
    fn text_about_ssh_does_not_count_as_its_use() {
        for script in [
            "mpirun -n 2 train",
            "# ssh $h true\nmpirun train # not ssh $h",
            "cp sshd_config /etc/ssh/sshd_config; mkdir -p ~/.ssh; chmod 700 /root/.ssh",
            "apt-get install -y ssh openssh-client",
            "which ssh && command -v ssh",
            "echo \"ssh $h true\"; echo ssh a b",
            "echo 'a; ssh b c'",
            "git clone git@github.com:a/b; ssh-keyscan github.com >> known_hosts",
            "GIT_SSH_COMMAND='ssh -i key' git fetch",
            "python train.py --launcher ssh",
            "mpirun --mca plm_rsh_agent /etc/mpi/kubexec.sh --mca plm_rsh_no_tree_spawn 1 train",
            "mpirun -x NCCL_DEBUG -launcher rsh train",
            "case $x in ssh) true;; esac",
            "ping -c 1 redis; cp /data/worker-1.txt .; nc -z redis 6379",
            "mpirun -H a-worker-0,a-worker-1 train /data/x-worker-0.txt",
            "ssh -V; ssh-keygen -t rsa",
        ] {
            assert_eq!(of(script), [], "{script}");
        }
    }

    #[test]
    fn options_and_variables_that_name_ssh_are_found() {
        for (script, what) in [
            ("mpirun --mca plm_rsh_agent ssh train", SshUse::Agent),
            ("mpirun -mca plm_rsh_agent \"ssh -p 2222\" train", SshUse::Agent),
            ("mpirun --prtemca plm_ssh_agent /usr/bin/ssh train", SshUse::Agent),
            (
                "OPTIONS='--mca plm_rsh_agent ssh'; mpirun $OPTIONS train",
                SshUse::Agent,
            ),
            ("export OMPI_MCA_plm_rsh_agent=ssh; mpirun train", SshUse::Agent),
            ("mpirun -bootstrap ssh train", SshUse::Agent),
            ("mpiexec.hydra -bootstrap-exec=/usr/bin/ssh train", SshUse::Agent),
            ("I_MPI_HYDRA_BOOTSTRAP=ssh mpirun train", SshUse::Agent),
            ("mpiexec -launcher ssh train", SshUse::Agent),
            ("mpirun --mca plm_rsh_args '-p 2222' train", SshUse::Arguments),
            ("export PRTE_MCA_plm_ssh_args='-p 2222'", SshUse::Arguments),
            (
                "horovodrun --ssh-port 2222 -np 2 python train.py",
                SshUse::Arguments,
            ),
            ("until nslookup pi-worker-0.pi; do sleep 1; done", SshUse::Wait),
            (
                "for h in $(cat /etc/mpi/hostfile); do until nc -z $h 22; do sleep 1; done; done",
                SshUse::Wait,
            ),
            ("until (echo > /dev/tcp/$h/2222); do sleep 1; done", SshUse::Wait),
            ("mpirun -H pi-worker-0.pi:1,pi-worker-1.pi:1 train", SshUse::Host),
            ("mpirun -H $J-worker-0.$J.$NS.svc train", SshUse::Host),
        ] {
            assert_eq!(of(script), [what], "{script}");
        }
    }
}
