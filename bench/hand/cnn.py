"""The built-in cnn's loop, timed by hand: seconds per full step, written where ``HAND_OUT`` says."""

import json
import os
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from outpace import data
from outpace.scripts import cnn


def main() -> None:
    images, labels, _, _ = map(torch.from_numpy, data.mnist("sample"))
    loader = DataLoader(TensorDataset(cnn.normalized(images), labels), 64, shuffle=True, drop_last=True)
    model = cnn.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    ends = [time.perf_counter()]
    try:
        while len(ends) <= int(sys.argv[1]):
            for images, labels in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                ends.append(time.perf_counter())
    finally:
        Path(os.environ["HAND_OUT"]).write_text(json.dumps({"ends": ends, "now": time.time()}))


if __name__ == "__main__":
    main()
