"""Runs that leave a laboratory as a folder, and come into one."""

from jobs.exchange.export import Exported, export_run
from jobs.exchange.import_ import Imported, import_run

__all__ = ["Exported", "Imported", "export_run", "import_run"]
