"""The export of runs to folders and files, and their import."""

from jobs.exchange.export import Exported, check_exportable, export_run, export_zip
from jobs.exchange.import_ import Imported, import_run, import_zip

__all__ = ["Exported", "Imported", "check_exportable", "export_run", "export_zip", "import_run", "import_zip"]
