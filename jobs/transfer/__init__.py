"""Runs that leave a laboratory as a folder, and come into one."""

from jobs.transfer.export import Exported, export_run
from jobs.transfer.import_ import Imported, import_run

__all__ = ["Exported", "Imported", "export_run", "import_run"]
