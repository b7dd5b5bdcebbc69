"""From frozen views to Plotly figures. No Streamlit here."""

from dashboard.charts.curves import curve_chart, small_charts
from dashboard.charts.forest import forest_chart
from dashboard.charts.relations import matrix_chart, pair_chart, planted_chart
from dashboard.charts.studies import overview_chart

__all__ = [
    "curve_chart",
    "forest_chart",
    "matrix_chart",
    "overview_chart",
    "pair_chart",
    "planted_chart",
    "small_charts",
]
