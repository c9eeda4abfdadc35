"""The farm, with a worker that is killed in the middle of its first task."""
import os
import pathlib
import signal

import farm

marker = pathlib.Path("killed")
count = farm.count


def count_or_die(first):
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return count(first)
    print(f"dies in task {first}", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


farm.count = count_or_die
farm.worker(int(os.environ["FARM_PORT"]))
