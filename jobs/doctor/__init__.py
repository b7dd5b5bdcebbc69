"""What is wrong with a laboratory, in words, and what can be done about it."""

from jobs.doctor.examination import Examination, examine, of_store
from jobs.doctor.finding import Finding, Fix, Severity

__all__ = ["Examination", "Finding", "Fix", "Severity", "examine", "of_store"]
