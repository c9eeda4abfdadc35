#!/bin/sh
# Checks the completions in fish and zsh, which `make test` does not need. Usage: tools/test-shells.sh PROGRAM
set -eu
program=$1
for shell in fish zsh; do
    command -v $shell >/dev/null || { echo "$shell is missing; install it, for example with: apt-get install $shell" >&2; exit 2; }
done
script=$(mktemp -d)
trap 'rm -r "$script"' EXIT
mkdir "$script/folder"
"$program" completions fish >"$script/completions.fish"
"$program" completions zsh >"$script/_training-operator"

# fish: prints the completions of a line. expect LINE WORD
expect() {
    words=$(cd "$script" && fish --no-config -c "source completions.fish; complete --do-complete '$1'" | cut -f 1)
    echo "$words" | grep -qxF -- "$2" || { printf 'fish: %s: no %s in:\n%s\n' "$1" "$2" "$words" >&2; exit 1; }
}
expect 'training-operator lo' local
expect 'training-operator local ' node
expect 'training-operator validate --out' --output
expect 'training-operator validate --output s' sarif
expect 'training-operator crd --kind MPI' MPIJob
expect 'training-operator run --enable-scheme Py' PyTorchJob
expect 'training-operator run --gang-scheduler-name v' volcano
expect 'training-operator local run --venv fol' folder/

# zsh completes only in an interactive shell, so this shows that it reads the script.
read_script="autoload -Uz compinit; compinit -u -D; source $script/_training-operator; whence -w _training-operator"
test "$(zsh -f -c "$read_script")" = '_training-operator: function'
for values in '(MXJob TFJob ' ':_files -/' '(volcano scheduler-plugins-scheduler)'; do
    grep -qF "$values" "$script/_training-operator" || { echo "zsh: no $values" >&2; exit 1; }
done
echo 'completions: fish and zsh ok'
