"""The shared layers. An encoder turns a batch of subwords into states (B, L, D) for all tasks."""

from core.models.encoders.base import Encoder
from core.models.encoders.bilstm import BiLSTM
from core.models.encoders.fast_bert import TrainedRows, join_rows, train_rows, weight_count, whole_vocabulary
from core.models.encoders.frozen import CachedTransformer, FrozenFeatures, shared_transformer
from core.models.encoders.transformer import LazyTransformer, Transformer, load_transformer

__all__ = [
    "BiLSTM",
    "CachedTransformer",
    "Encoder",
    "FrozenFeatures",
    "LazyTransformer",
    "TrainedRows",
    "Transformer",
    "join_rows",
    "load_transformer",
    "shared_transformer",
    "train_rows",
    "weight_count",
    "whole_vocabulary",
]
