"""Trains a small classifier in every replica of a PyTorchJob, with DistributedDataParallel.

The same file runs as master and worker, as MASTER_ADDR, MASTER_PORT, WORLD_SIZE
and RANK say: the operator's for `python train.py`, those of torchrun for `torchrun
train.py`. Each rank makes its own share of the points of three spiral arms, and
all gradients are averaged over the ranks. Then each checks that all have the same
weights, to the last bit, and that they are good enough.

Exit codes: 0 done, 1 an error, 3 target missed, 4 the weights differ.

Settings, from the environment: EPOCHS (60), PAUSE (0; seconds after each epoch, to
watch or disturb a running job).
"""

import hashlib
import math
import os
import sys
import time

import torch
import torch.distributed as dist

# DistributedDataParallel imports it too late: defaults of its functions would hold the group, whose threads then
# outlive destroy_process_group and can abort the process at its end.
import torch.distributed.nn
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ARMS = 3
POINTS = 1536  # of all the ranks together
TARGET = 0.95  # accuracy on points that no rank trains on


def spirals(points, seed):
    """Points on noisy spiral arms, and the arm that each belongs to."""
    random = torch.Generator().manual_seed(seed)
    arm = torch.arange(points) % ARMS
    radius = 0.1 + 0.9 * torch.rand(points, generator=random)
    noise = 0.12 * torch.randn(points, generator=random)
    angle = 4 * radius + arm * 2 * math.pi / ARMS + noise
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), arm


def digest(model):
    """What the weights are, in a few letters."""
    sha = hashlib.sha256()
    for weights in model.parameters():
        sha.update(weights.detach().numpy().tobytes())
    return sha.hexdigest()[:16]


def everybodys(own):
    """What each rank gives, by rank."""
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, own)
    return found


def train(rank, ranks):
    data, labels = spirals(POINTS // ranks, seed=1 + rank)
    torch.manual_seed(rank)  # other values in each rank, so that only DDP makes them agree
    network = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, ARMS))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    pause = float(os.environ.get("PAUSE", "0"))
    for epoch in range(1, int(os.environ.get("EPOCHS", "60")) + 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), labels)
        loss.backward()
        optimizer.step()
        if epoch == 1 or epoch % 10 == 0:
            print(f"epoch={epoch} rank={rank} loss={loss.item():.4f}", flush=True)
        time.sleep(pause)
    print(f"final loss={loss.item():.4f} rank={rank}", flush=True)
    return network


def main():
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = train(rank, ranks)
    test, expected = spirals(600, seed=0)
    accuracy = (model(test).argmax(dim=1) == expected).float().mean().item()
    weights = digest(model)
    print(f"RESULT rank={rank} of {ranks} accuracy={accuracy:.3f} weights={weights}", flush=True)
    same = set(everybodys(weights)) == {weights}
    dist.barrier()  # rank 0 serves the store that the others still use
    dist.destroy_process_group()
    if not same:
        return 4
    return 0 if accuracy >= TARGET else 3


if __name__ == "__main__":
    sys.exit(main())
