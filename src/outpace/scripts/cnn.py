"""LeNet-style CNN on MNIST (PyTorch)."""

import argparse
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader, TensorDataset

import outpace
from outpace import data

Batches = DataLoader[tuple[torch.Tensor, ...]]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 20, kernel_size=5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, kernel_size=5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip


def normalized(images: torch.Tensor) -> torch.Tensor:
    return (images.unsqueeze(1) / 255 - 0.1307) / 0.3081  # mean and deviation of the training images


def train(model: nn.Module, loader: Batches, optimizer: Optimizer, epoch: int, device: str) -> None:
    model.train()
    for batch, pair in enumerate(loader):
        images, labels = (part.to(device) for part in pair)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch % 100 == 0 and not sys.stdout.isatty():
            share = f"{batch * len(images)}/{len(loader.dataset)} ({100 * batch / len(loader):.0f}%)"
            print(f"Train Epoch: {epoch} [{share}]  Loss: {loss.item():.6f}", flush=True)


@torch.no_grad()
def test(model: nn.Module, loader: Batches, device: str) -> float:
    model.eval()
    right = 0
    for images, labels in loader:
        right += int((model(images.to(device)).argmax(1).cpu() == labels).sum())
    return right / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="sample", help="sample (default), full, or a folder with MNIST")
    parser.add_argument("--epochs", type=int, default=10, help="default: 10")
    parser.add_argument("--batch-size", type=int, default=64, help="default: 64")
    parser.add_argument("--lr", type=float, help="default: 0.001; on the sample, which is small, 0.01")
    args = parser.parse_args()
    if args.lr is None:
        args.lr = 0.01 if args.data == "sample" else 0.001
    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
    if torch.backends.mps.is_available():
        device = "mps"
    train_images, train_labels, test_images, test_labels = map(torch.from_numpy, data.mnist(args.data))
    train_set = TensorDataset(normalized(train_images), train_labels)
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True)
    test_loader = DataLoader(TensorDataset(normalized(test_images), test_labels), batch_size=1000)
    model = network().to(device)
    optimizer = SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(1, args.epochs + 1):
        train(model, train_loader, optimizer, epoch, device)
    accuracy = test(model, test_loader, device)
    print(f"Test accuracy: {accuracy:.4f}")
    outpace.log(test_accuracy=accuracy)


if __name__ == "__main__":
    main()
