"""What is wrong with a laboratory, in words, and what can be done about it."""

from jobs.doctor.laboratory import Examination, examine, of_store
from jobs.doctor.machine import Finding, Fix, Severity

__all__ = ["Examination", "Finding", "Fix", "Severity", "examine", "of_store"]
