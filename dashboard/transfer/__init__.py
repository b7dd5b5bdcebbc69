"""The page that tells which task helps which."""
