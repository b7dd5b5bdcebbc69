"""Larger parts of pages, one idea each: cards, tables, a run in full."""
