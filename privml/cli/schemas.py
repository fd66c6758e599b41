# SPDX-License-Identifier: Apache-2.0
"""The settings of every verb as dataclasses: names, types, defaults, meanings and the groups that are chosen from.

configuration.py makes configurations of them; docs/reference/settings.md is made from them.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from privml.cli.fields import setting
from privml.cli.groups import Model
from privml.engines.interface import DEFAULT, TRAINING

# What OmegaConf takes for a value that must be given.
MISSING = "???"


@dataclass
class Ahead:
    """What is prepared before it is asked for."""

    ahead: int = setting(
        0,
        "number of queries whose products with weights are prepared together while a session is idle and has none "
        "left, if its client asks for work ahead (0: none)",
        least=0,
    )


@dataclass
class Training:
    """What task=training does."""

    steps: int = setting(4, "steps of gradient descent", least=1)
    rate: float = setting(0.05, "learning rate", positive=True)
    bits: int = setting(64, "bits of the ring", least=8)
    scale: int = setting(16, "fractional bits", least=0)


# Settings of verbs that have settings of their own, which are no groups.
NESTED = {"preprocess": Ahead, "training": Training}

# What verbs have in common.
MODEL = {each.name: None for each in fields(Model)}
_MODEL_ABOUT = (
    "the model: model=NAME takes a shipped one; one of your own is model.onnx=FILE.onnx, or model.torch=MODULE:FUNCTION"
)
ARRAYS = ".npy, .csv or .parquet"


def _model(name: str | None, about: str = _MODEL_ABOUT, required: bool = False) -> Any:
    return setting({**MODEL, "name": name}, about, required=required)


def _calibration() -> Any:
    about = f"inputs ({ARRAYS}, .npz with arrays by the inputs' names) that ranges are measured on, or "
    return setting(None, about + "calibration.NAME=FILE for each; null: the shipped model's own")


def _token_ids() -> Any:
    about = (
        "how a secret look-up of ids is computed: secret (no party learns them), public (all parties learn the ids), "
        "client (the client learns the table); or token_ids={NAME:WAY} for single inputs"
    )
    return setting("secret", about)


def _state() -> Any:
    about = (
        "what calls of one session keep as shares: state={NAME: [INPUT, OUTPUT]}, an input and the output (a name, or "
        "a number from 0 on) that is its next value, and for one that grows [INPUT, OUTPUT, DIMENSION, MOST]; "
    )
    return setting(None, about + "null: nothing")


def _generate() -> Any:
    about = "turns a causal language model of transformers into one step of greedy decoding; the value is the largest "
    return setting(None, about + "number of ids in a text, prompt included; null: the model as it is", least=2)


def _outputs() -> Any:
    return setting(None, "fields of the model's output class, as outputs=[logits]; null: the first usual one")


def _tree_structure() -> Any:
    about = "what all parties know about decision trees: public (shape and features), hidden (only depth and number)"
    return setting("public", about, of=("public", "hidden"))


def _threads(about: str = "lanes of the session, each a connection and a thread; the same at both parties") -> Any:
    return setting(1, about, least=1)


def _calibrate(default: str) -> Any:
    about = (
        "where predicted seconds come from: quick (figures of a reference machine, scaled to this one in two seconds), "
        "missing (calls that are not known yet are measured on this machine, for minutes, and kept in the user's cache "
        "folder), all (they are measured again), or none"
    )
    return setting(default, about, of=("quick", "missing", "all", "none", True, False))


def _program(about: str = "file of the converted model") -> Any:
    return setting(MISSING, about)


def _store_key() -> Any:
    about = "file of the key that seals the store; null: privml/store.key in the user's configuration folder"
    return setting(None, about)


@dataclass
class Common:
    quiet: bool = setting(False, "print only results")


@dataclass
class Limits:
    """Limits of a service, and how it stops."""

    queue: int = setting(16, "sessions that may wait for a thread; further clients learn when to retry", least=0)
    queue_seconds: float = setting(30, "seconds that a session may wait", least=0)
    session_seconds: float = setting(
        3600, "seconds that a session may last (0: no limit); in the second half it starts no further query", least=0
    )
    sessions_per_name: int = setting(
        0,
        "running and waiting sessions per client (by the name in its certificate), for a dealer per server and client "
        "(0: no limit); beyond it the client's idle session is closed, or the client learns when to retry",
        least=0,
    )
    query_rows: int = setting(256, "rows of a query: every size that the program leaves open", least=1)
    query_elements: int = setting(4194304, "elements of all inputs of a query together", least=1)
    state_bytes: int = setting(
        1073741824, "bytes of state that sessions keep for one client (by the name in its certificate)", least=0
    )
    half_open: int = setting(64, "connections that have not sent their first message", least=1)
    hello_seconds: float = setting(10, "seconds within which a connection must send its first message", positive=True)
    drain_seconds: float = setting(
        30, "seconds that sessions have after SIGTERM or Ctrl-C; a second signal ends them at once", least=0
    )
    log: str = setting("text", "text, or json: one object per line and event", of=("text", "json"))


@dataclass
class Stored:
    """A store of correlations that a session draws from."""

    preprocessing: str | None = setting(
        None, "folder of this party's half of a store made by `privml preprocess`; null: the session makes correlations"
    )
    when_empty: str = setting(
        "refuse", "if the store does not suffice for a query: refuse it, or make its correlations in the session"
    )
    store_key: str | None = _store_key()
    dealer: str | None = setting(
        None,
        "address of party 2 (`privml deal`) for three parties; null: two parties, or a store of what it dealt ahead",
    )


@dataclass
class Convert(Common):
    """Turns a trained model into a program (architecture and formats) and the server's weights."""

    EXAMPLE: ClassVar = "privml convert model.torch=hospital.py:trained calibration=patients.csv out=hospital"
    GROUPS: ClassVar = {"numerics": "fixed32"}
    model: Any = _model(None, required=True)
    out: str = setting(MISSING, "folder of the program and the weights")
    calibration: Any = _calibration()
    tree_structure: str = _tree_structure()
    token_ids: Any = _token_ids()
    outputs: Any = _outputs()
    state: Any = _state()
    generate: int | None = _generate()
    steps: int = setting(64, "calls of a session on which the formats of a model with state are judged", least=1)
    debug: bool = setting(False, "print the log and the graphs of torch while it traces the model")


@dataclass
class Serve(Limits, Stored, Common):
    """Party 0: owns the weights and answers queries until it is interrupted."""

    EXAMPLE: ClassVar = "privml serve program=lenet/program weights=lenet/weights.safetensors listen=127.0.0.1:9000"
    GROUPS: ClassVar = {"engine": "auto", "ot": "softspoken", "link": "lan", "identity": "default"}
    program: str = _program()
    weights: str | None = setting(MISSING, "file of the weights")
    listen: str = setting("127.0.0.1:9000", "host:port to listen on")
    workers: int = setting(4, "sessions at a time, each on its own thread; processes or actors of a cluster", least=1)
    cluster: str | None = setting(
        None, "null: threads of this process; local: processes of this machine; ray: Ray actors", of=("local", "ray")
    )
    worker_sessions: int = setting(1, "sessions at a time of each worker of a cluster", least=1)
    worker_port: int = setting(0, "first port of the workers of a cluster; 0: any free ports", least=0)
    advertise: str | None = setting(
        None, "host under which clients reach the workers of a cluster; null: the host of `listen`"
    )
    ray_address: str | None = setting(None, "address of a Ray cluster; null: one is started on this machine")
    monitor: str | None = setting(
        None, "address of this machine for /healthz, /readyz and /metrics, such as 127.0.0.1:9100; null: none"
    )
    aborts: str | None = setting(
        None,
        "for engine=active with certificates: the file that counts the failed sessions of each client, through "
        "restarts; null: privml/aborts.json in the user's folder of state",
    )
    queries: int = setting(0, "stop after this many answered queries (0: never)", least=0)
    deadline: float = setting(60, "seconds that a read may wait for the client", positive=True)
    session_queries: int = setting(1000, "queries of one session at most", least=1)
    idle: float = setting(60, "seconds that a session may be idle between two queries", positive=True)
    threads: int = _threads()
    preprocess: Ahead = field(default_factory=Ahead, metadata={"about": "what is prepared ahead of queries"})


@dataclass
class Deal(Limits, Common):
    """Party 2 of three: deals for a server and its clients until it is interrupted."""

    EXAMPLE: ClassVar = "privml deal program=lenet/program listen=127.0.0.1:9002"
    GROUPS: ClassVar = {"engine": "auto", "identity": "default"}
    program: str = _program()
    listen: str = setting("127.0.0.1:9002", "host:port to listen on")
    workers: int = setting(16, "sessions at a time, each on its own thread", least=1)
    sessions: int = setting(0, "stop after this many sessions (0: never)", least=0)
    deadline: float = setting(60, "seconds that a read may wait for another party", positive=True)


@dataclass
class Query(Stored, Common):
    """Party 1: owns the input and learns the scores."""

    EXAMPLE: ClassVar = "privml query program=lenet/program server=127.0.0.1:9000 input=digits.npy out=scores.npy"
    GROUPS: ClassVar = {"engine": "auto", "ot": "softspoken", "identity": "default"}
    program: str = _program()
    server: str = setting(MISSING, "host:port of the server")
    input: Any = setting(
        MISSING,
        f"the inputs ({ARRAYS}, .npz with arrays by name), or input.NAME=FILE for each; for a program with state also "
        "several steps, along a dimension in front",
    )
    out: str | None = setting(None, "file of the results (.npy); null: none")
    deadline: float = setting(
        60, "seconds to wait for the server to accept the connection, and for each of its messages", positive=True
    )
    answer_seconds: float = setting(0, "seconds that the answer may take (0: no limit)", least=0)
    retries: int = setting(0, "how often to retry, in a new session, if the server is busy or gone", least=0)
    backoff: float = setting(1, "seconds before the first retry, twice as many before each further one", positive=True)
    ledger: str | None = setting(None, "file for the ledger, as JSON; null: none")
    generate: int | None = setting(
        None, "new ids, for a program converted with generate=; its input is a prompt [length]", least=1
    )
    threads: int = _threads()


@dataclass
class Preprocess(Common):
    """Makes the correlations of `count` queries ahead of time: one party listens, the other one names it as server;
    with engine=threepc both also name the dealer, which queries then do not need."""

    EXAMPLE: ClassVar = "privml preprocess program=lenet/program count=100 listen=127.0.0.1:9000 store=store"
    GROUPS: ClassVar = {"engine": DEFAULT, "ot": "softspoken", "link": "lan", "identity": "default"}
    program: str = _program()
    weights: str | None = setting(
        None,
        "file of the weights, at the listening party: products with them are prepared, too, or with a dealer shares of "
        "them are kept; null: transfers alone, or weights are shared in each query",
    )
    count: int = setting(100, "queries; more of them fill ciphertexts better", least=1)
    batch: int = setting(1, "inputs per query", least=1)
    listen: str | None = setting(None, "host:port: makes the server's half; exactly one of listen and server is given")
    server: str | None = setting(None, "host:port of the listening party: makes the client's half")
    dealer: str | None = setting(None, "address of party 2 (`privml deal`), with engine=threepc; null: two parties")
    store: str = setting("store", "new folder for this party's half")
    store_key: str | None = _store_key()
    threads: int = _threads("lanes of the sessions that will use it")
    deadline: float = setting(
        60, "seconds to wait for the other party to connect, and for each of its messages", positive=True
    )


@dataclass
class Certs(Common):
    """Certificates of the parties: `privml certs init`, `privml certs issue name=hospital-a`, `privml certs show
    file=...`."""

    EXAMPLE: ClassVar = "privml certs issue name=hospital-a"
    GROUPS: ClassVar = {}
    action: str = setting(MISSING, "init, issue or show", of=("init", "issue", "show"))
    folder: str = setting(
        "certs", "the authority's folder: authority.pem is for all parties, authority.key only for the issuer"
    )
    name: str | None = setting(None, "issue: the party's name; init: the authority's name")
    out: str | None = setting(None, "issue: folder for NAME.pem and NAME.key; null: `folder`")
    days: int | None = setting(
        None, "how long the certificate is valid; null: 365 days for a party, 1825 for the authority", least=1
    )
    file: str | None = setting(None, "show: the certificate")


@dataclass
class Doctor(Common):
    """Shows what this machine offers to privml; with identity.tls... also this party's certificate and which names of
    peers are required."""

    EXAMPLE: ClassVar = "privml doctor"
    GROUPS: ClassVar = {"identity": "default"}


@dataclass
class Run(Common):
    """All parties on this machine, each in its own process, for trials."""

    EXAMPLE: ClassVar = "privml run model=lenet count=3"
    GROUPS: ClassVar = {"engine": DEFAULT, "ot": "softspoken", "numerics": "fixed32", "link": "loopback"}
    model: Any = _model(None, required=True)
    input: Any = setting(
        None, f"the inputs ({ARRAYS}, .npz) or input.NAME=FILE for each; null: the shipped model's samples"
    )
    count: int = setting(10, "the largest number of inputs", least=1)
    out: str | None = setting(None, "file of the results (.npy); null: none")
    calibration: Any = _calibration()
    tree_structure: str = _tree_structure()
    token_ids: Any = _token_ids()
    outputs: Any = _outputs()
    state: Any = _state()
    generate: int | None = _generate()
    deadline: float = setting(60, "seconds that a read may wait", positive=True)
    threads: int = _threads()


@dataclass
class Cost(Common):
    """Bytes, rounds and correlations of one query, predicted from the graph alone; and its time, from how long calls
    take on this machine."""

    EXAMPLE: ClassVar = "privml cost model=lenet link=wan"
    GROUPS: ClassVar = {"engine": DEFAULT, "ot": "softspoken", "numerics": "fixed32", "link": "loopback"}
    model: Any = _model(None)
    program: str | None = setting(None, "file of the converted model; null: `model` is converted first")
    calibration: Any = _calibration()
    tree_structure: str = _tree_structure()
    token_ids: Any = _token_ids()
    outputs: Any = _outputs()
    state: Any = _state()
    generate: int | None = _generate()
    batch: int = setting(1, "inputs per query; for a program whose state grows, the length that a step adds", least=1)
    length: int = setting(0, "for such a program, the length of the state before the step", least=0)
    prepared: int = setting(
        0,
        "number of queries for which products with weights are prepared together (0: none); above 0 no seconds are "
        "predicted",
        least=0,
    )
    threads: int = _threads("lanes of the session: independent layers overlap")
    calibrate: Any = _calibrate("quick")


@dataclass
class Advise(Common):
    """Which engine, number format and transfers to choose for a model, a link and a threat."""

    EXAMPLE: ClassVar = "privml advise model=lenet link=wan threat=semi_honest"
    GROUPS: ClassVar = {
        "link": "wan",
        **{f"numerics@formats.{name}": name for name in ("fixed32", "fixed64", "float32", "bfloat16", "mixed")},
    }
    model: Any = _model(None, required=True)
    threat: str = setting(
        "semi_honest",
        "semi_honest: parties follow the protocol and try to learn; malicious: they may deviate",
        of=("semi_honest", "malicious"),
    )
    parties: int | None = setting(None, "2, 3, or null for both", of=(2, 3))
    batch: int = setting(1, "inputs per query", least=1)
    threads: int = _threads()
    transfers: str = setting(
        "best", "best: only the best transfers of each engine and format; or all", of=("best", "all")
    )
    truncation: str = setting("auto", "how three parties truncate")
    input: str | None = setting(
        None, f"inputs ({ARRAYS}) that accuracy is measured on; null: the shipped model's own, at most `count` of them"
    )
    count: int = setting(32, "see input", least=1)
    calibration: Any = _calibration()
    calibrate: Any = _calibrate("quick")


@dataclass
class Experiment(Common):
    """One run, or with experiment=NAME the sweep that configs/experiment/NAME.yaml describes; writes a JSON line for
    each run and prints a table."""

    EXAMPLE: ClassVar = "privml experiment experiment=lenet_engines"
    GROUPS: ClassVar = {"engine": DEFAULT, "ot": "softspoken", "numerics": "fixed32", "link": "loopback"}
    HYDRA: ClassVar = {"callbacks": {"table": {"_target_": "privml.cli.sweep.Table"}}}
    model: Any = _model("lenet", "the shipped model: model=NAME")
    name: str = setting("single", "names the file of results and the experiment in MLflow")
    task: str = setting(
        "inference",
        "inference: a query of `count` inputs between processes on this machine; training: steps of gradient descent "
        "on batches of `count`, all parties in this process, compared with the same steps in the clear",
        of=("inference", "training"),
    )
    count: int = setting(4, "inputs of a query or a step", least=1)
    calibration: Any = _calibration()
    deadline: float = setting(120, "seconds that a read may wait", positive=True)
    threads: int = _threads()
    seed: int = setting(0, "seed of weights and batches", least=0)
    training: Training = field(default_factory=Training, metadata={"about": "settings of task=training"})
    results: str = setting("experiments", "folder of <name>.jsonl")
    tracking: str | None = setting(
        "sqlite:///${results}/mlflow.db", "MLflow tracking address, used if MLflow is installed; null: none"
    )


@dataclass
class Bench(Common):
    """Throughput and bytes of a suite of operators: JSON lines in `results`, and a table."""

    EXAMPLE: ClassVar = "privml bench suite=ot op=cot link=lan"
    GROUPS: ClassVar = {"suite": DEFAULT, "engine": DEFAULT, "ot": "softspoken", "link": "loopback"}
    op: str | None = setting(None, "one operator of the suite; null: all")
    n: int | None = setting(None, "size of a batch, which `batch` also sets; null: the suite's", least=1)
    batch: int | None = setting(None, "see n", least=1)
    bound: Any = setting(
        None, "for operators that have one: the bound on their numbers, as a part of half their ring; null: the suite's"
    )
    repeats: int = setting(3, "number of runs", least=1)
    bits: int = setting(64, "suites threepc and classical: the ring")
    device: str = setting("cpu", "suite threepc: the parties' device, cpu or cuda")
    truncation: str | None = setting(None, "suite threepc: the truncation; null: the row's")
    k: int = setting(64, "suite spdz2k: the ring, 64 or 32")
    deadline: float = setting(600, "seconds that a read may wait", positive=True)
    threads: int = _threads("lanes of the session: large batches are divided over them")
    results: str | None = setting(
        None, "folder of the JSON lines, one file per suite; null: results in the user's cache folder"
    )


@dataclass
class Evaluate(Common):
    """Compares secure with clear inference of the shipped models: records, cards, docs/zoo.md and one page of HTML."""

    # Every model's own number formats, or those of numerics=NAME for all.
    EXAMPLE: ClassVar = "privml evaluate zoo model=lenet link=lan"
    GROUPS: ClassVar = {"engine": DEFAULT, "ot": "softspoken", "numerics": None, "link": "loopback"}
    model: Any = _model("all", "the shipped models: all, or model=NAME, or several as model=lenet+mlp")
    count: int = setting(
        10,
        "rows of the one query of each model, halved until it sends at most `largest` bytes; a query that even then "
        "sends more, or whose messages alone take longer than `patience` seconds, is predicted but not run",
        least=1,
    )
    repeats: int = setting(1, "runs of each query; the record is that of the run of median time", least=1)
    largest: float = setting(1e9, "see count", positive=True)
    patience: float = setting(150, "see count", positive=True)
    threads: int = _threads()
    deadline: float = setting(300, "seconds that a read may wait", positive=True)
    measure: bool = setting(True, "false: only draws the records of earlier evaluations")
    results: str | None = setting(
        None,
        "file of the records, one JSON line per model, engine and link; a new evaluation replaces those with its keys; "
        "null: results/zoo.jsonl in the user's cache folder",
    )
    report: str | None = setting("build/zoo.html", "file of the page, which loads nothing from elsewhere; null: none")
    cards: bool = setting(False, "whether to fill the shipped models' cards with the records of `results`")
    markdown: str | None = setting(None, "file of the tables in Markdown; null: none")
    calibrate: Any = _calibrate("none")


@dataclass
class Train(Common):
    """Trains a model on secret data by an ordinary loop of PyTorch on secret tensors, and for comparison in the clear
    from the same start. Losses are revealed for the curve, and the weights at the end."""

    EXAMPLE: ClassVar = "privml train train=logistic split=vertical train.epochs=2"
    GROUPS: ClassVar = {"train": "lenet", "engine": TRAINING, "identity": "default"}
    way: str = setting(
        "eager",
        "eager: loss.backward() and torch.optim on secret tensors; traced: privml.compile_step, less depth, sgd alone",
        of=("eager", "traced"),
    )
    bits: int = setting(64, "bits of the ring of every number", least=8)
    scale: int = setting(16, "fractional bits of every number", least=0)
    floating: str | None = setting(None, "a floating-point format instead, float32 or bfloat16; null: fixed point")
    steps: int = setting(0, "batches at most; 0: all of every epoch", least=0)
    seed: int = setting(3, "seed of first weights and of the order of rows", least=0)
    split: str = setting(
        "owner",
        "who has the data: owner (party 1 has all), horizontal (parties 0 and 1 have half of the rows each), vertical "
        "(party 0 has the first half of the columns, party 1 the rest and the labels); the first weights are party 0's",
        of=("owner", "horizontal", "vertical"),
    )
    show_loss: int = setting(1, "reveal the loss every so many steps (0: never)", least=0)
    show_accuracy: int = setting(
        0, "reveal the accuracy on `accuracy_rows` test rows every so many steps (0: never)", least=0
    )
    accuracy_rows: int = setting(64, "see show_accuracy", least=1)
    save_every: int = setting(0, "save the parties' shares every so many steps (0: never)", least=0)
    resume: bool = setting(
        False,
        "true: go on from the newest step that all parties have saved; steps, train.epochs and train.rate may differ "
        "from the run that saved",
    )
    compare: bool = setting(True, "whether to train in the clear, too, for comparison")
    processes: bool = setting(False, "true: each party in a process of its own on this machine")
    rank: int | None = setting(
        None,
        "one party of a run between machines: 0 with listen (and dealer), 1 with connect (and dealer), 2, the dealer, "
        "with listen; null: all parties on this machine",
        of=(0, 1, 2),
    )
    listen: str | None = setting(None, "host:port to listen on, with rank=0 or rank=2")
    connect: str | None = setting(None, "host:port of party 0, with rank=1")
    dealer: str | None = setting(None, "host:port of party 2, with rank=0 or rank=1")
    deadline: float = setting(60, "seconds that a party may wait for another", positive=True)
    out: str = setting("training", "folder of losses.jsonl, losses.png, weights.safetensors and the parties' shares")


SCHEMAS: dict[str, Any] = {
    each.__name__.lower(): each
    for each in (
        Convert, Serve, Deal, Query, Preprocess, Certs, Doctor, Run, Cost, Advise, Train, Experiment, Bench, Evaluate,
    )
}  # fmt: skip


def settings_of(schema: Any) -> list[Field]:
    """The fields of a schema, those that it shares with others last."""
    own = vars(schema).get("__annotations__", {})
    return sorted(fields(schema), key=lambda each: each.name not in own)


def places(verb: str) -> dict[str, str]:
    """Where a verb's groups are read into, and the group: {"link": "link", "formats.mixed": "numerics"}."""
    return {name.partition("@")[2] or name: name.partition("@")[0] for name in SCHEMAS[verb].GROUPS}


def names(verb: str) -> set[str]:
    """The names of a verb's settings and groups, without what follows a dot."""
    return {each.name for each in fields(SCHEMAS[verb])} | {place.partition(".")[0] for place in places(verb)}


def shipped_alone(verb: str) -> bool:
    """Whether the verb's model is a shipped one in any case: there is one by default."""
    model = next((each for each in fields(SCHEMAS[verb]) if each.name == "model"), None)
    return model is not None and model.default_factory()["name"] is not None  # type: ignore[misc]
