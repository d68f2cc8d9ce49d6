"""Elman RNN on MNIST images read as sequences of rows (PyTorch).

Each image is a sequence of 28 rows, resampled to 10 columns. The binary label is whether the digit is 5 or
more. Both answers are about equally frequent, and the order of the rows decides: on the sample, a model of
this size that is shown the same rows without their order stops near 0.7, the RNN comes to about 0.87.
"""

import argparse
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import outpace
from outpace import data


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(input_size=10, hidden_size=20, batch_first=True)
        self.head = nn.Linear(20, 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        outputs, _ = self.rnn(rows)
        return self.head(outputs[:, -1]).squeeze(1)


def dataset(images: torch.Tensor, labels: torch.Tensor) -> TensorDataset:
    return TensorDataset(F.adaptive_avg_pool1d(images / 255, 10), (labels >= 5).float())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="sample", help="sample (default), full, or a folder with MNIST")
    parser.add_argument("--epochs", type=int, help="default: 10; on the sample, which is small, 40")
    parser.add_argument("--batch-size", type=int, default=64, help="default: 64")
    parser.add_argument("--lr", type=float, help="default: 0.001; on the sample 0.003")
    args = parser.parse_args()
    if args.epochs is None:
        args.epochs = 40 if args.data == "sample" else 10
    if args.lr is None:
        args.lr = 0.003 if args.data == "sample" else 0.001
    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
    if torch.backends.mps.is_available():
        device = "mps"
    train_images, train_labels, test_images, test_labels = map(torch.from_numpy, data.mnist(args.data))
    loader = DataLoader(dataset(train_images, train_labels), args.batch_size, shuffle=True)
    model = Classifier().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        for batch, (rows, large) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(rows.to(device)), large.to(device))
            loss.backward()
            optimizer.step()
            if batch % 100 == 0 and not sys.stdout.isatty():
                share = f"{batch * len(rows)}/{len(loader.dataset)} ({100 * batch / len(loader):.0f}%)"
                print(f"Train Epoch: {epoch} [{share}]  Loss: {loss.item():.6f}", flush=True)
    model.eval()
    rows, large = dataset(test_images, test_labels).tensors
    with torch.no_grad():
        accuracy = ((model(rows.to(device)).cpu() > 0) == large.bool()).float().mean().item()
    majority = max(large.mean().item(), 1 - large.mean().item())
    print(f"Test accuracy: {accuracy:.4f} (always the more frequent answer: {majority:.4f})")
    outpace.log(test_accuracy=accuracy, majority_accuracy=majority)


if __name__ == "__main__":
    main()
