"""Lightning, as in its first tutorial, with validation: 2 epochs of 100 samples in batches of 32."""

import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))

    def training_step(self, batch, _index):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        print(f"LOSS {loss.item():.9f}")
        return loss

    def validation_step(self, batch, _index):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


lightning.seed_everything(1, verbose=False)
data = TensorDataset(torch.randn(100, 10), torch.randn(100, 1))
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="auto",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Regression(), DataLoader(data, batch_size=32), DataLoader(data, batch_size=50))
