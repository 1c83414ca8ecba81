"""As the model file of TorchServe's text classification: bags of embeddings, and a layer on them."""

from torch import nn


class TextSentiment(nn.Module):
    def __init__(self, vocab_size=64, embed_dim=8, num_class=4):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim)
        self.fc = nn.Linear(embed_dim, num_class)

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))
