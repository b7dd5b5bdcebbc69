"""Encoders, heads and the tagger that joins them. `registry` needs no torch; the other modules do."""
