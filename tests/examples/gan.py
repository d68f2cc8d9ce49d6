"""A GAN after the well-known tutorial: two optimizers, three backward passes per batch of 16, 80 images."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
loader = DataLoader(TensorDataset(torch.randn(80, 20)), batch_size=16, shuffle=True)
generator = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 20))
discriminator = nn.Sequential(nn.Linear(20, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
for _ in range(3):
    for (real,) in loader:
        discriminator.zero_grad()
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        loss_real = criterion(discriminator(real), ones)
        loss_real.backward()
        fake = generator(torch.randn(len(real), 5))
        loss_fake = criterion(discriminator(fake.detach()), zeros)
        loss_fake.backward()
        optimizer_d.step()

        generator.zero_grad()
        loss_g = criterion(discriminator(fake), ones)
        loss_g.backward()
        optimizer_g.step()
        print(f"LOSS {loss_real.item() + loss_fake.item() + loss_g.item():.9f}")
