Completion in bash, which is on every machine that builds this repository. `make test-shells` does the same in zsh and fish.

  $ mkdir -p jobs/folder && touch jobs/file.yaml && cd jobs
  $ . <(training-operator completions bash)
  $ compopt() { :; }    # bash has it only while it completes
  $ complete -p training-operator | grep -o -- '-o default'
  -o default
  $ function=$(complete -p training-operator | sed 's/.*-F \([^ ]*\).*/\1/')
  $ completed() {
  >     IFS=' ' read -ra COMP_WORDS <<< "$1 "; [[ $1 == *' ' ]] && COMP_WORDS+=('')
  >     COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  >     COMPREPLY=(); $function training-operator "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  >     echo "$1: ${COMPREPLY[*]}"
  > }

It completes at every level.

  $ completed 'training-operator lo'
  training-operator lo: local
  $ completed 'training-operator local ' | grep -o -w -e run -e cluster -e node
  run
  cluster
  node
  $ completed 'training-operator local r'
  training-operator local r: run
  $ completed 'training-operator validate --out'
  training-operator validate --out: --output
  $ completed 'training-operator local run --ven'
  training-operator local run --ven: --venv
  $ completed 'training-operator validate --output s'
  training-operator validate --output s: sarif
  $ completed 'training-operator crd --kind MPI'
  training-operator crd --kind MPI: MPIJob
  $ completed 'training-operator run --enable-scheme Py'
  training-operator run --enable-scheme Py: PyTorchJob
  $ completed 'training-operator run --gang-scheduler-name v'
  training-operator run --gang-scheduler-name v: volcano
  $ completed 'training-operator render --gang-scheduler-name sch'
  training-operator render --gang-scheduler-name sch: scheduler-plugins-scheduler
  $ completed 'training-operator completions f'
  training-operator completions f: fish

A directory is expected here, and files below: bash completes them if a script has no words.

  $ completed 'training-operator local run --venv fol'
  training-operator local run --venv fol: folder
  $ completed 'training-operator local run --venv fi'
  training-operator local run --venv fi:
  $ completed 'training-operator validate fi'
  training-operator validate fi:
  $ completed 'training-operator local run '
  training-operator local run :
  $ completed 'training-operator diff fi'
  training-operator diff fi:
