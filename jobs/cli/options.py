"""Options that several verbs have, their parsers, and verbs that take many options as one object."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter
from typing import Any, TypeVar, get_type_hints

import typer

from core.config.typed import whole_number
from core.errors import MRNLabError
from core.plain_text import shortened

_Choice = TypeVar("_Choice", bound=str)
_Result = TypeVar("_Result")


def whole(name: str, least: int, most: int = 2**31 - 1) -> Callable[[str | int], int]:
    """A parser of whole numbers for the option or argument `name`.

    It raises MRNLabError for other text, also for numbers that only Python reads (`1_0`, ` 1`).
    """

    def read(text: str | int) -> int:
        number = text if isinstance(text, int) else whole_number(text)
        if number is None or not least <= number <= most:
            raise MRNLabError(
                f"{name}: '{shortened(str(text))}' is not a whole number from {least:,} to {most:,}."
            )
        return number

    return read


def number_option(name: str, about: str, least: int, most: int = 2**31 - 1) -> Any:
    """The option `name` of a whole number from `least` to `most`."""
    return typer.Option(name, metavar="N", help=about, parser=whole(name, least, most))


def one_of(name: str, choices: Iterable[_Choice]) -> Callable[[str], _Choice]:
    """A parser of the option `name`, which raises MRNLabError for a value not in `choices`."""
    by_text = {str(choice): choice for choice in choices}

    def read(text: str) -> _Choice:
        if text not in by_text:
            raise MRNLabError(f"{name}: '{shortened(text)}' is not one of {', '.join(by_text)}.")
        return by_text[text]

    return read


def run_number(text: str) -> int:
    """The number of a run, which may not exist. Raises MRNLabError for other text."""
    if (number := whole_number(text)) is None or not text.isdecimal():
        raise MRNLabError(f"RUN: '{shortened(text)}' is not the number of a run; `mrnlab runs` lists them.")
    return number


def format_option(about: str, *formats: str) -> Any:
    """The option `--format` with these choices."""
    return typer.Option("--format", metavar="|".join(formats), help=about, parser=one_of("--format", formats))


JSON_OPTION = typer.Option("--json", help="Print one JSON document on standard output.")
EVERY_ROW_OPTION = typer.Option(
    "--every-row", help="A row a configuration, without a choice among candidates by dev."
)
RUN_ARGUMENT = typer.Argument(metavar="RUN", help="The number of a run.", parser=run_number)
RUNS_ARGUMENT = typer.Argument(metavar="RUN...", help="The numbers of runs.", parser=run_number)
SPLIT_OPTION = typer.Option(
    metavar="dev|test", help="The split with the scores.", parser=one_of("--split", ("dev", "test"))
)


def grouped(verb: Callable[..., _Result]) -> Callable[..., _Result]:
    """The verb as typer calls it: a parameter that is a dataclass has an option for each field of it.

    The fields are annotated as parameters of a verb are; options come in the order of parameters and fields.
    """
    annotations = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: each for name, each in annotations.items() if is_dataclass(each)}

    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        options = {name: parameter.default}
        hints = annotations
        if group := groups.get(name):
            hints = get_type_hints(group, include_extras=True)
            options = {
                field.name: Parameter.empty if field.default is MISSING else field.default
                for field in fields(group)
            }
        parameters += [
            Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=hints[option])
            for option, default in options.items()
        ]

    @functools.wraps(verb)
    def call(**options: Any) -> _Result:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return verb(**options, **made)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call
