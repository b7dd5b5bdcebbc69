"""The Compare page, with its studies."""
