"""From frozen views to Plotly figures. No Streamlit here."""

from dashboard.charts.confusion import confusion_chart
from dashboard.charts.curves import curve_chart, small_charts
from dashboard.charts.forest import forest_chart
from dashboard.charts.relations import pair_chart, planted_chart
from dashboard.charts.seeds import seeds_chart
from dashboard.charts.sharing import sharing_chart
from dashboard.charts.studies import overview_chart

__all__ = [
    "confusion_chart",
    "curve_chart",
    "forest_chart",
    "overview_chart",
    "pair_chart",
    "planted_chart",
    "seeds_chart",
    "sharing_chart",
    "small_charts",
]
