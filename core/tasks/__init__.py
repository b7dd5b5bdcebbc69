"""Kinds of tasks: labels of words, of texts and of pairs, numbers of pairs; their scores. Needs no torch.

A new kind is a class in `core.tasks.kinds` and an entry of its KINDS; its head and loss stand in
`core.models.text_heads`.
"""

from core.tasks.kinds import KINDS, TaskKind, kind_of, score_task, tasks_reading

__all__ = ["KINDS", "TaskKind", "kind_of", "score_task", "tasks_reading"]
