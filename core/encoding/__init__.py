"""From words to batches: subwords, windows for long sentences, an on-disk cache, batches by length."""
