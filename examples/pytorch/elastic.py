"""Trains with torchrun's elastic mode: workers of a PyTorchJob may come and go.

Start it with `torchrun elastic.py`; the operator's PET_* variables say where the
workers meet and how many there may be. When one is lost or added torchrun starts
this program anew in all of them, with other ranks; it then goes on from the
checkpoint that rank 0 has left in the folder CHECKPOINTS, which all must share, and
which has the model (model.pt) in the end.
Rank 0 reads it for all, so it does not matter what the others see of the folder.

However often it was started anew, the model ends with the weights that an
undisturbed run gives, but for rounding: in each epoch every point is used once,
by one rank or another.

Exit codes: 0 done, 1 an error, 3 target missed, 4 the weights differ.

Settings, from the environment: CHECKPOINTS (required), EPOCHS (40), PAUSE (0;
seconds after each epoch, to watch or disturb a running job).
"""

import hashlib
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

POINTS = 1200  # of all the ranks together
TRUTH = torch.tensor([2.0, -3.4, 4.2])
RATE = 0.3
TARGET = 0.02  # maximum error of each weight


def points():
    """Points near the plane z = 2 x - 3.4 y + 4.2, as rows (x, y, 1) and z: the same in every rank."""
    random = torch.Generator().manual_seed(1)
    rows = torch.cat([2 * torch.rand(POINTS, 2, generator=random) - 1, torch.ones(POINTS, 1)], dim=1)
    return rows, rows @ TRUTH + 0.01 * torch.randn(POINTS, generator=random)


def save(path, epoch, weights):
    """Whole or not at all: a run that is killed here leaves the checkpoint before."""
    part = path.with_suffix(".part")
    torch.save({"epoch": epoch, "weights": weights}, part)
    os.replace(part, path)


def load(path, rank):
    """The epochs that are done, and the weights: rank 0's, in all ranks."""
    found = [{"epoch": 0, "weights": torch.zeros(3)}]
    if rank == 0 and path.exists():
        found = [torch.load(path)]
    dist.broadcast_object_list(found)
    return found[0]["epoch"], found[0]["weights"]


def train(rank, ranks, path):
    rows, z = points()
    rows, z = rows[rank::ranks], z[rank::ranks]
    done, weights = load(path, rank)
    print(f"resume epoch={done} rank={rank} of {ranks}", flush=True)
    loss = torch.zeros(1)
    for epoch in range(done + 1, int(os.environ.get("EPOCHS", "40")) + 1):
        error = rows @ weights - z
        sums = torch.cat([rows.T @ error, (error**2).sum().reshape(1)])
        dist.all_reduce(sums)
        weights = weights - RATE * 2 * sums[:3] / POINTS
        loss = sums[3] / POINTS
        if rank == 0:
            save(path, epoch, weights)
        print(f"epoch={epoch} rank={rank} of {ranks} loss={loss.item():.5f}", flush=True)
        time.sleep(float(os.environ.get("PAUSE", "0")))
    print(f"final loss={loss.item():.5f} rank={rank}", flush=True)
    return weights


def main():
    path = Path(os.environ["CHECKPOINTS"]) / "checkpoint.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    weights = train(rank, ranks, path)
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:16]
    print(f"RESULT rank={rank} of {ranks} w={[round(w, 3) for w in weights.tolist()]} weights={digest}", flush=True)
    digests = [None] * ranks
    dist.all_gather_object(digests, digest)
    dist.barrier()  # rank 0 serves the store that the others still use
    if rank == 0 and path.exists():
        os.replace(path, path.with_name("model.pt"))  # the next job starts from the beginning
    dist.destroy_process_group()
    if set(digests) != {digest}:
        return 4
    return 0 if (weights - TRUTH).abs().max() <= TARGET else 3


if __name__ == "__main__":
    sys.exit(main())
