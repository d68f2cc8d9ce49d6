"""The Hugging Face Trainer on a small BERT: 40 samples in batches of 8, two epochs, evaluation after each."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return {"input_ids": torch.randint(5, 100, (12,), generator=generator), "labels": index % 2}


config = BertConfig(
    vocab_size=100, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=2,
        per_device_train_batch_size=8,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=1,
    )
    Trainer(
        BertForSequenceClassification(config), arguments, train_dataset=Sentences(), eval_dataset=Sentences()
    ).train()
