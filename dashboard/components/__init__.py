"""The two things Streamlit cannot show by itself: a chart that keeps its zoom, and a tagged sentence."""

from dashboard.components.chart import Click, chart
from dashboard.components.sentence import Lane, Mark, SentenceBlock, sentence

__all__ = ["Click", "Lane", "Mark", "SentenceBlock", "chart", "sentence"]
