"""The export of runs to folders and files, and their import."""

from jobs.exchange.export import Exported, export_run
from jobs.exchange.import_ import Imported, import_run

__all__ = ["Exported", "Imported", "export_run", "import_run"]
