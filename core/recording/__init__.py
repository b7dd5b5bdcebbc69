"""A training on record: its events to the store, its signs of life, requests to stop it."""
