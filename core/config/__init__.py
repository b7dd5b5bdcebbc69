"""RunConfig, the one description of a run, with the help texts of its fields and named presets."""

from core.config.presets import PRESETS as PRESETS
from core.config.presets import comparison_key as comparison_key
from core.config.presets import comparison_values as comparison_values
from core.config.presets import config_warnings as config_warnings
from core.config.presets import shares_nothing as shares_nothing
from core.config.presets import trains_heads_alone as trains_heads_alone
from core.config.run_config import FIELD_HELP as FIELD_HELP
from core.config.run_config import FIELD_RULES as FIELD_RULES
from core.config.run_config import OTHER as OTHER
from core.config.run_config import PARADIGMS as PARADIGMS
from core.config.run_config import RunConfig as RunConfig
from core.config.run_config import applicable_fields as applicable_fields
from core.config.run_config import default_value as default_value
from core.config.run_config import field_label as field_label
from core.config.run_config import fields_of as fields_of
from core.config.run_config import has_field as has_field
from core.config.run_config import public_name as public_name
from core.config.run_config import with_defaults as with_defaults
