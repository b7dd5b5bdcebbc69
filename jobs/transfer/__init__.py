"""Runs that leave a laboratory as a folder, and come into one."""

from jobs.transfer.exporting import Exported, export_run
from jobs.transfer.importing import Imported, import_run

__all__ = ["Exported", "Imported", "export_run", "import_run"]
