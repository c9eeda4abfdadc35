Every shell completes every command, and the manual has a page for each.

  $ commands='new render validate snapshot diff convert doctor explain crd new-kind smoke-test completions man local remote-shell'
  $ for shell in bash zsh fish elvish powershell; do
  >     training-operator completions $shell > script
  >     for command in $commands; do grep -q -e $command script || echo "$shell does not complete $command"; done
  > done
  $ training-operator completions bsh
  ! error: invalid value 'bsh' for '<SHELL>'
  !   [possible values: bash, elvish, fish, powershell, zsh]
  !
  !   tip: a similar value exists: 'bash'
  !
  ! For more information, try '--help'.
  [2]
  $ training-operator man | sed -n '/^\.TH/s/ 1 .*//p'
  .TH training-operator
  $ training-operator man --dir pages/man1
  $ for command in $commands; do grep -q ${command/-/.*-} pages/man1/training-operator-$command.1; done
  $ for verb in list status logs events report restart wait; do
  >     page=pages/man1/kubectl-training-$verb.1
  >     grep -m 1 "^  kubectl training $verb" $page; grep "training-operator $verb" $page
  > done
    kubectl training list
    kubectl training status train
    kubectl training logs train
    kubectl training events train
    kubectl training report train \-\-output\-file train.html
    kubectl training restart train
    kubectl training wait train \-\-for finished
  [1]
  $ grep -o 'kubectl.-training.-status(1)' pages/man1/kubectl-training.1
  kubectl\-training\-status(1)
