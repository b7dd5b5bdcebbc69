"""Results: the one rule of which runs count and what their scores say. Needs no torch.

Pages, verbs, library, appendix and studies ask these files, each of one idea:

- `samples`: which runs count, on which text, one a seed; runs by data and by configuration.
- `naming`: names that tell runs and configurations apart.
- `table`: configurations × tasks over seeds; `stored` makes the tables of a store's runs.
- `comparisons`: differences between rows, with their verdicts, and the sentence that sums them up.
- `methods`: configurations that one searches over as candidates of a method; the table with a row a method.
- `pairs`: which rows are compared first, and the seeds that rows lack.
- `signature`: in a line, what the figures of a table depend on.
- `series`: scores against the one number in which configurations differ.
- `plan`: seeds until decided, as a declared plan and its state.
- `choice`: dev chooses, on the tasks and seeds that all candidates have.
- `records`: tables and differences as CSV, JSON and DataFrames have them.
- `suspects`: places where runs agree with each other and not with gold.
- `where`: a difference by buckets, kinds of errors and schemes; `scored_text` has the sentences it needs.
- `relations`: what a configuration learned of its tasks and labels over seeds, with verdicts and controls.
- `relation_gains`: each label's strongest relation beside its gain over MTL.
- `filter`: runs by text, field and score.
- `figures`: forests of differences, scores against a number. It loads Plotly, so import it late.

The statistics of scores by seed are in `core.evaluation`, which knows no runs.
"""
