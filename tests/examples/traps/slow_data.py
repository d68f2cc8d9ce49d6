"""Decodes its samples one by one in the training process: the model waits."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __len__(self):
        return 6400

    def __getitem__(self, index):
        time.sleep(0.001)  # a photo from a disk, cut and turned
        return torch.full((64,), float(index % 10)), index % 10


model = nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for _ in range(3):
    for rows, labels in DataLoader(Photos(), batch_size=16):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
