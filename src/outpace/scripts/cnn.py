"""LeNet-style CNN on MNIST (PyTorch)."""

import argparse
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import outpace
from outpace import data


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip


def dataset(images, labels) -> TensorDataset:
    pixels = torch.from_numpy(images.copy()).unsqueeze(1).float() / 255
    return TensorDataset((pixels - 0.1307) / 0.3081, torch.from_numpy(labels.copy()))


def train(model, loader, optimizer, device, epoch) -> None:
    model.train()
    for batch, (images, labels) in enumerate(loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch % 100 == 0 and not sys.stdout.isatty():
            seen, total = batch * loader.batch_size, len(loader.dataset)
            share = f"{seen}/{total} ({100 * batch / len(loader):.0f}%)"
            print(f"Train Epoch: {epoch} [{share}]  Loss: {loss.item():.6f}", flush=True)


@torch.no_grad()
def accuracy(model, loader, device) -> float:
    model.eval()
    right = sum((model(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", default="sample", help="sample, full, or a folder with MNIST (default: sample)"
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, help="learning rate (default: 0.001; on the sample 0.02)")
    args = parser.parse_args()
    digits = data.mnist(args.data)
    lr = args.lr or (0.02 if args.data == "sample" else 0.001)
    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
    if torch.backends.mps.is_available():
        device = "mps"
    train_set = dataset(digits.train_images, digits.train_labels)
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True)
    test_loader = DataLoader(dataset(digits.test_images, digits.test_labels), 1000)
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(1, args.epochs + 1):
        train(model, train_loader, optimizer, device, epoch)
    result = accuracy(model, test_loader, device)
    print(f"Test accuracy: {result:.4f}")
    outpace.log(test_accuracy=result)


if __name__ == "__main__":
    main()
