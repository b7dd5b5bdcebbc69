"""The built-in demo corpora: newswire-like English from MRN Lab's own grammar, free to share.

`grammar/` holds the sentences' rules by topic, `lexicon/` the words. Some names are kept for dev and test;
many words are ambiguous on purpose (report, rose, close; Boston the city and Boston the team).
"""

from core.corpora.demo.corpora import DEMO_COLUMNS, DEMO_POS_COLUMNS, demo, demo_pos_a, demo_pos_b

__all__ = ["DEMO_COLUMNS", "DEMO_POS_COLUMNS", "demo", "demo_pos_a", "demo_pos_b"]
