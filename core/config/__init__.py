"""RunConfig, the one description of a run, with the help texts of its fields and named presets."""

from core.config.conditions import CONDITIONS, LEARNABLE
from core.config.field_help import FieldHelp
from core.config.kind import applicable_fields, kind_key, kind_values, trains_heads_alone
from core.config.presets import PRESETS
from core.config.remarks import remarks
from core.config.run_config import FIELD_HELP, PARADIGMS, RunConfig

__all__ = [
    "CONDITIONS",
    "FIELD_HELP",
    "LEARNABLE",
    "PARADIGMS",
    "PRESETS",
    "FieldHelp",
    "RunConfig",
    "applicable_fields",
    "kind_key",
    "kind_values",
    "remarks",
    "trains_heads_alone",
]
