"""Results: the one rule of which runs count and what their scores say. Needs no torch.

Pages, verbs, library and reports ask these files, each of one idea:

- `samples`: which runs count, on which text, one a seed.
- `naming`: names that tell runs and configurations apart.
- `filter`: runs by text, field and score.
- `table`: configurations × tasks over seeds.
- `series`: scores against the one number in which configurations differ.
- `figures`: forests of differences and scores against a number. It loads Plotly, so import it late.
"""
