"""From frozen views to Plotly figures. No Streamlit here."""

from dashboard.charts.curves import curve_chart, small_multiples
from dashboard.charts.relations import matrix_chart, pair_chart

__all__ = ["curve_chart", "matrix_chart", "pair_chart", "small_multiples"]
