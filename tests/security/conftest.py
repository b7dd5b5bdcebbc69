"""The pages' fixtures serve here too: the app over a filled store, with no worker process."""

from tests.pages.conftest import filled, finished, open_page, templates, workers

__all__ = ["filled", "finished", "open_page", "templates", "workers"]
