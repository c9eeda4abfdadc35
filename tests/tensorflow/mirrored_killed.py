"""examples/tensorflow/mirrored.py, in which worker 1 is killed once, in the midst of its training."""

import os
import pathlib
import signal

MARK = pathlib.Path("killed")


def at_step(step):
    if step == 50 and task == 1 and not MARK.exists():  # noqa: F821: the example's own
        MARK.touch()
        os.kill(os.getpid(), signal.SIGKILL)


source = pathlib.Path("mirrored.py").read_text()
loop = "for _ in range(STEPS):\n"
assert loop in source
exec(compile(source.replace(loop, "for at in range(STEPS):\n    at_step(at)\n"), "mirrored.py", "exec"))
