"""The Launch page: its form, and the runs that the form makes."""
