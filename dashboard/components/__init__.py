"""Components that Streamlit lacks: Python and JavaScript side by side."""
