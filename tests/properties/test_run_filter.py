"""A filter of runs as a small algebra: negation, conjunction, and quotes that mean what they hold."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from core.results.filter import FilterError, parse_filter
from core.store import ErrorInfo, Run, RunState
from tests.making import config

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
_BASE = Run(
    id=1, config=config(), configuration_id="", sweep=None, state=RunState.QUEUED, created_at=NOW,
    started_at=None, finished_at=None, owner=None, heartbeat_at=None, step=0,
    total_steps=None, epoch=0.0, progress_at=None, best_epoch=None, checkpoint=None, log=None, error=None,
    attempt=1,
)  # fmt: skip

configs = st.sampled_from(
    [
        config(),
        config(**{"lambda": 0.1}, seed=3),
        config(paradigm="mtl", encoder="bert-base-cased", fraction=0.05),
        config(paradigm="stl", tasks=("ner",), corpus="/data/my corpus"),
        config(encoder_training="frozen", truecase=True),
    ]
)
moments = st.integers(0, 40 * 24).map(lambda hours: NOW - timedelta(hours=hours))
runs = st.builds(
    lambda config, **values: dataclasses.replace(_BASE, config=config, **values),
    configs,
    id=st.integers(1, 20),
    state=st.sampled_from(RunState),
    created_at=moments,
    finished_at=st.none() | moments,
    archived_at=st.none() | moments,
    keywords=st.sets(st.sampled_from(["paper", "best", "a-b"])).map(lambda words: tuple(sorted(words))),
    error=st.none() | st.just(ErrorInfo("TrainingError", "The loss of ner is not a number.", "")),
)
_TERMS = """
    mrn 0.1 ner 7 paper check -best state:failed,lost state:active status:c* paradigm:mrn paradigm=stl,mtl
    lambda<0.1 lambda<=0.1 lambda>0 lambda:* λ>=0.1 lambda=0.01,0.1 seed:3 fraction<1 truecase:yes
    encoder:bert* corpus:demo tasks:ner task:pos keyword:paper keyword:* tag:a* sweep:"a" sweep:* run>5
    id:1,2,3 created>2026-11-01 created<2h created:2026-11-20 ended<3d archived:yes archived:no error:loss
    minutes>1 learn:label encoder_training:frozen prior:relational sweep:* sweep:check,nan lambda!=0.1
    state!=queued
"""
terms = st.sampled_from([*_TERMS.split(), '"to check"', 'corpus:"my corpus"'])


def _holds(text: str, run: Run) -> bool:
    return parse_filter(text, NOW).matches(run)


@given(st.lists(terms, max_size=4), runs)
def test_terms_hold_together_and_a_minus_is_the_complement(several: list[str], run: Run) -> None:
    held = [_holds(term, run) for term in several]
    assert _holds("  ".join(several), run) is all(held)
    for term, holds in zip(several, held, strict=True):
        turned = term[1:] if term.startswith("-") else f"-{term}"
        assert _holds(turned, run) is not holds


unquoted = st.text(st.characters(exclude_characters='"'), min_size=1)


@settings(max_examples=50)
@given(unquoted, st.text(), st.text(), unquoted, runs)
def test_quotes_mean_what_they_hold(text: str, before: str, after: str, other: str, run: Run) -> None:
    named = dataclasses.replace(run, keywords=(before + text + after,), sweep=before + text + after)
    assert _holds(f'"{text}"', named)
    assert _holds(f'sweep:"{text}"', named)
    assert not _holds(f'-"{text}"', named)
    tagged = dataclasses.replace(run, keywords=(text,))
    assert _holds(f'keyword:"{other}"', tagged) is (text.casefold() == other.casefold())
    assert _holds(f'keyword:"{other}","{text}"', tagged)


@given(
    st.lists(st.sampled_from(['"', "\\", "-", ":", "<", ",", "*", " ", "keyword", "lambda", "x", "1", "λ"])),
    runs,
)
def test_whatever_is_written_is_a_filter_or_a_sentence(parts: list[str], run: Run) -> None:
    text = "".join(parts)
    try:
        holds: bool | FilterError = _holds(text, run)
    except FilterError as error:
        holds = error
    if isinstance(holds, FilterError):
        assert 0 <= holds.position <= len(text)
        assert str(holds).endswith(".")
