"""Where corpora come from: names, folders, uploads, and datasets of the Hugging Face Hub."""
