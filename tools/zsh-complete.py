#!/usr/bin/env python3
"""Completes a line in an interactive zsh, as Tab does, and prints the line.

Usage: tools/zsh-complete.py SCRIPT DIRECTORY LINE
"""

import os
import pty
import select
import sys

# The longest wait for the shell. It responds within milliseconds on an idle machine.
TIMEOUT_SECONDS = 60

# ^X prints the line. The word is written in two parts, because the terminal echoes the command.
SETUP = """\
PS1=; autoload -Uz compinit; compinit -u -D; source {script}; \
show() {{ print -r -- "<$BUFFER>" }}; zle -N show; bindkey '^X' show; bindkey '^I' complete-word; print re''ady
"""


def read_until(terminal, mark):
    seen = b""
    while mark not in seen:
        if not select.select([terminal], [], [], TIMEOUT_SECONDS)[0]:
            sys.exit(f"zsh: no {mark!r} in {seen!r}")
        seen += os.read(terminal, 65536)
    return seen.decode(errors="replace")


def main():
    script, directory, line = sys.argv[1:]
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(directory)
        os.environ["TERM"] = "dumb"
        os.execvp("zsh", ["zsh", "-f", "-i"])
    os.write(terminal, SETUP.format(script=script).encode())
    read_until(terminal, b"ready\r\n")
    os.write(terminal, line.encode() + b"\t\x18")
    seen = read_until(terminal, b">")
    os.close(terminal)
    os.waitpid(shell, 0)
    print(seen[seen.rindex("<") + 1 : seen.rindex(">")])


main()
