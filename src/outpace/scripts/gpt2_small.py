"""GPT-2 small, language-model training on synthetic tokens, for measuring and predicting (PyTorch)."""

import argparse
import importlib.util
import sys

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="synthetic", choices=["synthetic"])
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100, help="steps per epoch")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--sequence-length", type=int, default=1024)
    args = parser.parse_args()
    if not importlib.util.find_spec("transformers"):
        sys.exit("gpt2-small needs transformers: pip install transformers")
    from transformers import GPT2Config, GPT2LMHeadModel

    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
    if torch.backends.mps.is_available():
        device = "mps"
    config = GPT2Config()
    model = GPT2LMHeadModel(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    tokens = torch.randint(0, config.vocab_size, (args.batch_size, args.sequence_length), device=device)
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")
    for epoch in range(1, args.epochs + 1):
        for step in range(args.steps):
            optimizer.zero_grad()
            loss = model(tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            if step % 100 == 0 and not sys.stdout.isatty():
                print(f"Train Epoch: {epoch} [{step}/{args.steps}]  Loss: {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
