"""The pages of MRN Lab: a Streamlit app over the store and the jobs."""
