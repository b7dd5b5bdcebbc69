"""The parts of a run's description.

A field is one entry of a part: its meaning, label, unit and default, the condition under which a run has it,
and the value of runs from before the field existed. The form, the command line, links, clones and the docs
read it from here.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel

from core.config.fields import (
    MODEL_CONFIG,
    FieldView,
    always,
    bilstm_field,
    default_encoder_rate,
    default_head_rate,
    is_mrn,
    lambda_defaults,
    learning_field,
    mrn_field,
    prior_default,
    prior_lines,
    run_field,
    scaled_prior_field,
    word_field,
)
from core.registry import FROZEN, FULL, ONE_STACK, PREDICTED, has_bilstm, reads_words

Paradigm = Literal["stl", "mtl", "mrn", "other"]
Mode = Literal["task", "label", "feature", "none"]
OTHER = "other"
"""The paradigm of a system that was trained elsewhere, whose predictions are imported."""
PARADIGMS = ("stl", "mtl", "mrn")
"""The paradigms of runs that train here."""


class Part(BaseModel):
    """Some fields of a run's description, and their group of the form's *More settings*."""

    model_config = MODEL_CONFIG
    form_group: ClassVar[str] = ""


class Data(Part):
    """The data of a run: corpus, tasks, the share of the sentences, the labels."""

    form_group = "Data"
    corpus: str = run_field(
        ..., "name or folder", min_length=1, view=FieldView(option=True, short="", path=True)
    )
    """The annotated sentences: a name of the catalogue, a folder of annotated words or texts, a dataset of
    the Hub, as 'hub:nyu-mll/glue?config=cola', or a corpus derived from such, as 'apart:demo?tokens=300'.
    """
    columns: tuple[str, ...] | None = run_field(None, "names", view=FieldView(option=True))
    """The names of a CoNLL file's columns from left to right, one of them 'tokens'; unset where the corpus
    knows them.
    """
    tasks: tuple[str, ...] = run_field(..., "names", min_length=1, view=FieldView(option=True))
    """The columns of labels to learn. STL learns exactly one, MRN at least two."""
    fraction: float = run_field(
        1.0,
        "share",
        gt=0,
        le=1,
        label="Share",
        view=FieldView(
            rank=8,
            prominent=True,
            option=True,
            hint="100% uses all. A list such as 5%, 10% makes runs for each value.",
        ),
    )
    """The share of each corpus's training sentences to use, drawn at random by the seed."""
    fraction_draw: Literal["once", "each_epoch"] = run_field(
        "once", "choice", label="Draw the share", legacy="once"
    )
    """When the share is drawn: 'once', before training; 'each_epoch' trains on that share of freshly
    shuffled batches in every epoch, as the dissertation's program does.
    """
    dev_sentences: int | None = run_field(
        None,
        "sentences",
        ge=0,
        le=1_000_000,
        label="Held-out dev set",
        legacy=None,
        view=FieldView(unset="a tenth", counted="dev sentence"),
    )
    """Training sentences to hold out as development sentences, for each corpus without a dev split. Unset: a
    tenth. 0: none; all of them train, and without any dev split the last epoch is kept.
    """
    label_inventory: Literal["corpus", "train"] = run_field(
        "corpus", "choice", label="Label set", legacy="train"
    )
    """The labels that each head has: 'corpus' takes the corpus's own tag list, or else the labels of all its
    sentences; 'train' takes those of this run's training sentences.
    """
    truecase: bool = run_field(False, "yes or no", label="Restore case")
    """Restore the case of sentences written all in capitals, before tokenisation."""
    permuted: str | None = run_field(
        None,
        "task",
        min_length=1,
        label="Permuted task",
        legacy=None,
        view=FieldView(seldom=True, unset="none"),
    )
    """A control: the task whose training labels are permuted over its training words, so that they say
    nothing; spans stay whole and each label as frequent.
    """


class EncoderChoice(Part):
    """The shared layers, and how much of them is trained."""

    form_group = "Model"
    encoder: str = run_field(
        "minilm",
        "name",
        min_length=1,
        view=FieldView(rank=1, prominent=True, open=True, option=True, short="", path=True),
    )
    """The shared layers: a known name, a Hugging Face Hub id or a local folder; add '+bilstm' for a BiLSTM on
    top. A decoder (GPT-2, Llama, Qwen) reads left to right: its state of a word knows no word after it.
    """
    encoder_training: str = run_field(
        "full",
        "choice",
        choices=("full", "frozen", "top:K"),
        label="Training",
        view=FieldView(rank=2, prominent=True, open=True, option=True, short=""),
    )
    """'full' fine-tunes the encoder; 'frozen' computes its features once, caches them and trains only what
    stands on top, in seconds. Between the two: 'top:K' trains the last K layers over cached states of the
    layer below.
    """


class Sharing(Part):
    """How tasks share: alone (STL), an encoder (MTL), relations too (MRN), or added to a finished run."""

    form_group = "MRN"
    paradigm: Paradigm = run_field(
        "mrn", "choice", choices=PARADIGMS, view=FieldView(rank=3, prominent=True, option=True)
    )
    """STL trains one task alone, MTL shares the encoder among tasks, MRN also learns how tasks, labels and
    features relate.
    """
    system: str | None = run_field(
        None,
        "name",
        pattern=r"^[^\x00-\x1f\x7f]{1,80}$",
        when=lambda run: run["paradigm"] == OTHER,
        reason="a run that trains here is named by its settings",
        legacy=None,
        view=FieldView(seldom=True),
    )
    """The system whose predictions were imported, as 'flair'; unset in runs that train here."""
    prior: str | None = mrn_field(
        lambda run: PREDICTED if run.get("added_to") else "relational",
        "choice",
        description=f"The regulariser of MRN. {prior_lines()}; '{PREDICTED}': adds one task to a finished "
        "run.",
        view=FieldView(rank=4, prominent=True, option=True, short=""),
    )
    added_to: str | None = run_field(
        None,
        "number or folder",
        min_length=1,
        label="Added to run",
        when=lambda run: is_mrn(run) and run["prior"] == PREDICTED,
        reason="only a run with the prior predicted adds a task to another run",
        legacy=None,
        view=FieldView(
            rank=5,
            prominent=True,
            option=True,
            unset="the number of a finished run",
            hint="The run must have heads over the same frozen encoder.",
        ),
    )
    """The finished run over a frozen encoder that this run's one task is added to: its number, its checkpoint
    folder, or 'configuration:ID', the run of that configuration with the same seed. The new head starts from
    what the trained heads predict, and is regularised towards it.
    """
    alignment: str | None = mrn_field("auto", "choice", view=FieldView(rank=6, prominent=True, option=True))
    """How labels of different tasks are matched in MRN: 'disjoint' keeps them apart, 'exact' joins equal
    names, 'cooccurrence' relates labels that occur on the same tokens, 'mapping:FILE' follows a CSV file,
    'auto' chooses.
    """
    lambda_: float | None = mrn_field(
        prior_default("lambda_"),
        "factor",
        symbol="λ",
        alias="lambda",
        gt=0,
        le=1e6,
        label="λ",
        description=f"The strength of the MRN prior (unset: {lambda_defaults()}).",
        view=FieldView(rank=7, prominent=True, option=True, hint="One number, or a list such as 0.01, 0.1."),
    )
    learn: tuple[Mode, ...] | None = learning_field(
        prior_default("learn"),
        "task, label, feature",
        min_length=1,
        label="Covariances to learn",
    )
    """Which covariances MRN learns, or 'none'; the others stay as they begin (unset: relational over a
    frozen encoder learns task alone, else all three).
    """
    shrinkage: float | None = scaled_prior_field(1.0, "factor", symbol="κ", gt=0, le=1e6)
    """How strongly each learned covariance is regularised towards its initial value, in pseudo-observations
    for each of its rows; it matters most to features.
    """
    task_correlation: float | None = scaled_prior_field(
        0.0, "correlation", ge=0, lt=1, label="Task correlation at first", legacy=0.0
    )
    """The correlation of every two tasks with which the task covariance begins, and to which it is drawn
    where it is learned; 0 is the identity.
    """
    label_scale: Literal["equal", "counts"] | None = scaled_prior_field(
        "equal", "choice", label="Scale of labels", legacy="equal"
    )
    """How strongly MRN holds each label's weights near zero: 'equal', all labels alike; 'counts', in
    proportion to the label's training words, so that rare labels are held less.
    """
    update_every: int | None = learning_field(10, "steps", ge=1, le=100_000, label="Update covariances every")
    """Training steps between two updates of the covariances."""
    update_timing: Literal["interval", "epoch_start"] | None = learning_field(
        "interval", "choice", label="When to update", legacy="interval"
    )
    """Which steps update the covariances: 'interval' counts update_every steps over the whole run;
    'epoch_start' counts from the first batch of each epoch, which updates too, as the dissertation's program
    does. The last step always updates them.
    """
    snapshots: int | None = learning_field(50, "snapshots", ge=1, le=1000, view=FieldView(counted="snapshot"))
    """How often during the run the three covariances are stored, evenly spaced, the last step always."""


class Schedule(Part):
    """Which sentences make a step, how many steps there are, and how large they are."""

    form_group = "Training"
    seed: int = run_field(
        1,
        "number",
        ge=0,
        le=2**31 - 1,
        label="Seeds",
        view=FieldView(prominent=True, hint="For example 1, 2, 3 or 1-5. Each seed is a run."),
    )
    """The source of all randomness. Runs that differ only in it are seeds of one configuration."""
    epochs: int = run_field(
        5,
        "passes",
        ge=1,
        le=1000,
        view=FieldView(
            prominent=True,
            option=True,
            counted="epoch",
            hint="A list such as 5, 10 makes runs for each value.",
        ),
    )
    """Passes over the training sentences."""
    batch_size: int = run_field(16, "sentences", ge=1, le=4096, view=FieldView(short="batch"))
    """Sentences in one step, where batch_tokens is not set."""
    batch_tokens: int | None = run_field(
        None,
        "subwords",
        ge=8,
        le=1_000_000,
        label="Batch budget",
        legacy=None,
        view=FieldView(unset="none"),
    )
    """The most subwords in one step, of sentences of like length: many short or few long ones. Unset:
    batch_size sentences.
    """
    batching: Literal["by_length", "shuffled"] = run_field(
        "by_length", "choice", label="Batching", legacy="by_length"
    )
    """Which sentences share a batch: 'by_length' puts sentences of like length together, so that little is
    padded; 'shuffled' draws them at random.
    """
    corpus_order: Literal["mixed", "in_turn"] = run_field(
        "mixed", "choice", label="Several corpora", legacy="mixed"
    )
    """How several corpora make an epoch: 'mixed' draws batches from all sentences and averages losses over
    all tasks; 'in_turn' trains on one corpus after the other, and each batch averages the losses of its own
    tasks.
    """
    max_length: int = run_field(256, "subwords", ge=8, le=8192, label="Max. length")
    """Longest piece the encoder sees at once; longer sentences are read in overlapping windows."""
    lr_encoder: float | None = run_field(
        default_encoder_rate,
        "per step",
        gt=0,
        le=1,
        label="Learning rate, encoder",
        when=lambda run: run["encoder_training"] != FROZEN,
        reason="a frozen encoder is not trained; set encoder_training to full to use it",
    )
    """Learning rate of the encoder (unset: the encoder's own, 10 / K times that for top:K)."""
    lr_heads: float | None = run_field(
        default_head_rate, "per step", gt=0, le=1, label="Learning rate, heads", when=always
    )
    """Learning rate of the task heads (unset: ten times the encoder's, the same where the encoder reads word
    vectors, or 0.02 over a frozen encoder).
    """
    lr_bilstm: float | None = bilstm_field(1e-3, "per step", gt=0, le=1, label="Learning rate, BiLSTM")
    """Learning rate of the BiLSTM, and of dense layers above it."""


class Layers(Part):
    """The BiLSTM, the layers of encoders over words, task embeddings."""

    form_group = "Model"
    bilstm_hidden: int | None = bilstm_field(
        # Per direction: the SC-LSTM paper's table 2, the dissertation.
        lambda run: 256 if reads_words(str(run["encoder"])) else 768,
        "features",
        ge=1,
        le=4096,
        label="BiLSTM size",
        view=FieldView(short="BiLSTM size"),
    )
    """Size of the BiLSTM in each direction."""
    lstm_layers: int | None = word_field(
        lambda run: None if run["encoder"] == "lstm-d" else 1,
        "layers",
        ge=1,
        le=8,
        label="LSTM layers",
        legacy=None,
        view=FieldView(counted="LSTM layer"),
    )
    """How many LSTM layers stand one on the other; of sc-lstm the top one has the cells of the tasks
    (unset: 1, or of lstm-d one for each task).
    """
    task_order: tuple[str, ...] | None = run_field(
        None,
        "names",
        when=lambda run: run["encoder"] == "lstm-d" and run["paradigm"] != "stl",
        reason="only lstm-d has a layer for each task, and STL has one task",
        legacy=None,
        view=FieldView(unset="in the order of the tasks"),
    )
    """Which task reads which layer of lstm-d, from the lowest on; unset in the order of the tasks."""
    vectors: str | None = word_field(
        "glove", "name or file", label="Word vectors", legacy=None, view=FieldView(path=True)
    )
    """The pre-trained word vectors: 'glove', or a text file in the format of GloVe or word2vec, gzip too."""
    vectors_training: Literal["tuned", "fixed"] | None = word_field(
        "tuned",
        "choice",
        label="Word vectors are",
        legacy=None,
        view=FieldView(short="vectors"),
    )
    """'tuned' trains the vectors of the training words with all else; 'fixed' leaves them all as they are."""
    capitals: bool | None = word_field(True, "yes or no", label="Capitalisation", legacy=None)
    """Tell the encoder which of eight patterns of capitalisation each word has."""
    characters: Literal["none", "cnn"] | None = word_field("cnn", "choice", label="Characters", legacy=None)
    """'cnn' also reads each word's characters: 16 features each, 128 filters of width 3, max-pooled."""
    context_encoder: str | None = word_field(
        None,
        "name",
        min_length=1,
        label="Contextual vectors",
        legacy=None,
        view=FieldView(unset="none", path=True),
    )
    """A transformer that is read beside the word vectors, frozen: a known name, a Hugging Face Hub id or a
    local folder. Each word gets the states of its first subword (unset: none).
    """
    window: int | None = run_field(
        None,
        "words",
        ge=3,
        le=99,
        label="Words around each word",
        when=lambda run: run["encoder"] == ONE_STACK,
        reason="only the encoder bilstm reads windows of words",
        legacy=None,
        view=FieldView(seldom=True, unset="the whole sentence"),
    )
    """How many words the BiLSTM reads of each word, a sequence of its own with the word in the middle: an odd
    number (unset: the whole sentence).
    """
    shared_dense: int | None = word_field(
        None,
        "layers",
        ge=1,
        le=8,
        label="Dense layers of all tasks",
        legacy=None,
        view=FieldView(seldom=True, unset="none"),
    )
    """Dense layers with a ReLU above the LSTMs, the same for all tasks and as wide as their states (unset:
    none).
    """
    task_dense: int | None = word_field(
        None,
        "layers",
        ge=1,
        le=8,
        label="Dense layers of each task",
        legacy=None,
        view=FieldView(seldom=True, unset="none"),
    )
    """Dense layers with a ReLU that each task has of its own, above those that all share (unset: none)."""
    task_embedding: Literal["none", "input", "attention", "projected", "elu", "tanh", "selu"] | None = (
        run_field(
            "none",
            "choice",
            label="Task embeddings",
            when=lambda run: (
                run["paradigm"] != "stl"
                and run["encoder_training"] == FULL
                and not has_bilstm(str(run["encoder"]))
            ),
            reason="task embeddings need several tasks and a transformer that is fine-tuned in full, "
            "directly below the heads",
            legacy="none",
        )
    )
    """Trained vectors of each task, which tell the transformer which task it computes: 'input'
    adds one to the embeddings; 'attention' one each to the queries, keys and values of every layer;
    'projected' adds one to all of these, through a matrix each; 'elu', 'tanh' and 'selu' also pass each sum
    through that function and one more matrix. Every sentence is read once for each of its tasks, except with
    'none'.
    """
    input_dropout: float | None = word_field(0.5, "share", ge=0, lt=1, legacy=None)
    """Probability of dropout at the inputs of the LSTM's layers while training."""


class Heads(Part):
    """The output layers of the tasks, and their inputs from whole texts and pairs."""

    form_group = "Model"
    heads: Literal["own", "shared"] | None = run_field(
        "own",
        "choice",
        label="Rows of heads",
        when=lambda run: run["paradigm"] == "mtl",
        reason="only MTL can share rows of heads among tasks; the prior of MRN relates rows that each task "
        "has, and STL has one task",
        legacy="own",
        view=FieldView(reads=frozenset({"words"})),
    )
    """The rows of MTL's heads: 'own', each task has its own; 'shared', labels of equal name share one row,
    which is trained on the words of all tasks with the label.
    """
    head: Literal["linear", "crf", "crf_legal"] = run_field("linear", "choice", legacy="linear")
    """What labels are chosen by: 'linear' takes each word by itself; 'crf' learns which label follows
    which and takes the best sequence of a sentence; 'crf_legal' also rules out I- labels that continue no
    span.
    """
    pooling: Literal["auto", "cls", "mean"] = run_field(
        "auto",
        "choice",
        label="Vector of a text",
        legacy="auto",
        view=FieldView(reads=frozenset({"sentence", "text", "pair"})),
    )
    """What stands for a whole text: 'cls', the state of its first subword; 'mean', the mean over all its
    subwords; 'auto' follows the encoder's own convention.
    """
    pair_encoding: Literal["apart", "together"] = run_field(
        "apart",
        "choice",
        label="Pairs are read",
        legacy="apart",
        view=FieldView(reads=frozenset({"pair"})),
    )
    """How the encoder reads a pair of texts: 'apart' in two passes, whose vectors are then compared;
    'together' in one pass, so that each text sees the other.
    """
    pair_heads: Literal["own", "shared"] = run_field(
        "own", "choice", label="Heads of pairs", legacy="own", view=FieldView(reads=frozenset({"pair"}))
    )
    """The heads of pairs that are read apart: each task has its own, or all share one linear layer."""
    dropout: float = run_field(0.1, "share", ge=0, lt=1)
    """Probability of dropout at the heads while training."""
    dropout_on: Literal["features", "logits"] = run_field(
        "features", "choice", label="Dropout sets to zero", legacy="features"
    )
    """What dropout sets to zero: 'features', the inputs of the heads, or 'logits', their outputs, as the
    dissertation's program does.
    """
    head_init: Literal["zeros", "default"] = run_field("zeros", "choice", label="Heads start from")
    """What heads start from: zeros, or the random weights of a linear layer."""


class Optimisation(Part):
    """The optimiser, which tasks a step trains, when the training ends, and which epoch is kept."""

    form_group = "Training"
    optimiser: Literal["adamw", "adam", "sgd", "adadelta"] = run_field("adamw", "choice", legacy="adamw")
    """What makes the steps: AdamW, Adam, SGD with momentum 0.9, or Adadelta (its usual rate is 1)."""
    lr_schedule: Literal["linear", "linear_warmup", "constant"] = run_field(
        "linear", "choice", label="Learning rate schedule", legacy="linear"
    )
    """How the learning rates change: 'linear' falls to zero over all epochs, 'linear_warmup' does so after a
    rise over the first tenth of the steps, 'constant' stays.
    """
    weight_decay: float = run_field(1e-2, "per step", ge=0, le=10)
    """AdamW's decoupled weight decay; with the other optimisers an L2 penalty."""
    clip_norm: float | None = run_field(
        None,
        "norm",
        gt=0,
        le=1e6,
        label="Clip gradients at",
        legacy=None,
        view=FieldView(unset="none", short="clipped at"),
    )
    """The largest norm of a step's gradient; a larger gradient is scaled down to it."""
    draw_tasks: str = run_field(
        "together",
        "choice",
        choices=("together", "uniform", "by_size", "smoothed:0.5"),
        label="Task sampling",
        view=FieldView(open=True),
        legacy="together",
    )
    """Which tasks a step trains: 'together' all that its sentences have labels of; 'uniform' and 'by_size'
    one task, drawn among those with batches left, all alike or by their number; 'smoothed:A' draws by size
    too, but an epoch has batches of a task in proportion to their number to the power A.
    """
    task_weights: tuple[float, ...] | None = run_field(
        None,
        "factors",
        label="Weights of tasks",
        when=lambda run: run["paradigm"] != "stl",
        reason="STL has one task; set the paradigm to mtl or mrn",
        legacy=None,
        view=FieldView(unset="1 for each task"),
    )
    """What each task's loss is multiplied by, in the order of the tasks (unset: 1)."""
    balancing: Literal["none", "uncertainty", "dwa", "pcgrad", "upgrad", "cagrad"] | None = run_field(
        "none",
        "choice",
        label="Balance tasks",
        when=lambda run: run["paradigm"] in ("mtl", "mrn") and run["prior"] != PREDICTED,
        reason="a run of one task has nothing to balance; set the paradigm to mtl, or to mrn with another "
        "prior",
        legacy="none",
    )
    """How a step combines its tasks: 'none' takes the mean of their losses; 'uncertainty' learns a weight for
    each loss (Kendall et al., 2018); 'dwa' weights a loss by how it fell in the last two epochs (Liu et al.,
    2019); 'pcgrad', 'upgrad' and 'cagrad' combine the tasks' gradients on the shared weights, with TorchJD.
    """
    affinity_every: int | None = run_field(
        None,
        "steps",
        ge=1,
        le=100_000,
        label="Measure gradients every",
        when=lambda run: (
            run["paradigm"] != "stl"
            and (run["encoder_training"] != FROZEN or has_bilstm(str(run["encoder"])))
        ),
        reason="it compares what tasks do to layers that they share and train; STL has one task, and a "
        "frozen encoder without a BiLSTM trains no layer but the heads",
        legacy=None,
        view=FieldView(unset="never"),
    )
    """Training steps between two measurements of how the tasks' gradients agree, as cosines (unset: none).
    They change nothing in the training but its time.
    """
    patience: int | None = run_field(None, "epochs", ge=1, le=1000, legacy=None, view=FieldView(unset="none"))
    """After how many epochs without a better one the training ends early (unset: it never does)."""
    select_by: Literal["score", "loss", "last"] = run_field("score", "choice", label="Best epoch by")
    """Which epoch's model is kept: the one with the highest mean score over tasks on the development
    sentences, the one with the lowest mean cross-entropy over tasks there, or the last. Tasks whose score is
    undefined there count in no mean; where it is of all tasks, the loss decides.
    """


class Scoring(Part):
    """How an epoch is scored, and where the run computes."""

    form_group = "Scores and machine"
    pos_score: Literal["accuracy", "seqeval_f1"] = run_field(
        "accuracy", "choice", label="Score of plain labels"
    )
    """How tasks without spans are scored: token accuracy, or seqeval's F1 as in the dissertation's tables."""
    device: str = run_field("auto", "device", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    """Where to train: auto, cpu, cuda or cuda:N."""
    precision: Literal["auto", "fp32", "bf16"] = run_field("auto", "choice")
    """Numbers in the encoder while it trains: 32-bit floats, or bfloat16 where the machine is fast at it.
    What is predicted, and so every score, is computed in 32-bit floats.
    """
