"""From the store to frozen views: everything a page shows, without Streamlit and without SQL."""
