"""The rules that tell what a column holds, the same for CoNLL columns, texts, lists and datasets."""
