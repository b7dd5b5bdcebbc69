"""Training: the loop, its events, best-epoch selection, device and precision. `events` needs no torch."""
