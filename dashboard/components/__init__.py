"""What Streamlit cannot show by itself: charts that keep their zoom, their legend, and a tagged sentence."""

from dashboard.components.chart import Click, Picture, Zoom, chart
from dashboard.components.curve_legend import LegendRow, curve_legend
from dashboard.components.sentence import Lane, Mark, SentenceBlock, sentence
from dashboard.components.small_charts import small_charts
from dashboard.components.sparkline import sparkline

__all__ = [
    "Click",
    "Lane",
    "LegendRow",
    "Mark",
    "Picture",
    "SentenceBlock",
    "Zoom",
    "chart",
    "curve_legend",
    "sentence",
    "small_charts",
    "sparkline",
]
