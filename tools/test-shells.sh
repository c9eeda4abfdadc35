#!/bin/sh
# Checks the completions in fish and zsh, which `make test` does not need. Usage: tools/test-shells.sh PROGRAM
set -eu
program=$1
tools=$(cd "$(dirname "$0")" && pwd)
for shell in fish zsh; do
    command -v $shell >/dev/null || { echo "$shell is missing; install it, for example with: apt-get install $shell" >&2; exit 2; }
done
script=$(mktemp -d)
trap 'rm -r "$script"' EXIT
mkdir "$script/folder"
"$program" completions fish >"$script/completions.fish"
"$program" completions zsh >"$script/_training-operator"

# expect LINE COMPLETED FISH_WORD: zsh completes the line, and fish offers the word.
expect() {
    line=$("$tools/zsh-complete.py" "$script/_training-operator" "$script" "$1")
    [ "${line% }" = "$2" ] || { printf 'zsh: %s becomes %s, not %s\n' "$1" "$line" "$2" >&2; exit 1; }
    words=$(cd "$script" && fish --no-config -c "source completions.fish; complete --do-complete '$1'" | cut -f 1)
    echo "$words" | grep -qxF -- "$3" || { printf 'fish: %s: no %s in:\n%s\n' "$1" "$3" "$words" >&2; exit 1; }
}
expect 'training-operator lo' 'training-operator local' local
expect 'training-operator local n' 'training-operator local node' node
expect 'training-operator validate --out' 'training-operator validate --output=' --output
expect 'training-operator validate --output s' 'training-operator validate --output sarif' sarif
expect 'training-operator crd --kind MPI' 'training-operator crd --kind MPIJob' MPIJob
expect 'training-operator run --enable-scheme Py' 'training-operator run --enable-scheme PyTorchJob' PyTorchJob
expect 'training-operator run --gang-scheduler-name v' 'training-operator run --gang-scheduler-name volcano' volcano
expect 'training-operator local run --venv fol' 'training-operator local run --venv folder/' folder/
echo 'completions: fish and zsh ok'
