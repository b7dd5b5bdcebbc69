"""The form of the Launch page: what it asks, and the runs it makes."""
