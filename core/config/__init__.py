"""RunConfig, the one description of a run, with the help texts of its fields and named presets."""

from core.config.fields import CONDITIONS, LEARNABLE
from core.config.presets import PRESETS, kind_key, kind_values, remarks, trains_heads_alone
from core.config.run_config import FIELD_HELP, PARADIGMS, FieldHelp, RunConfig, applicable_fields

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
