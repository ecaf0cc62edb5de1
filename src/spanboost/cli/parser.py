"""The commands: their names, descriptions and examples.

The options of a command are added when its help or its arguments are needed, and its module is
imported when it runs: `spanboost --help` imports nothing heavy.
"""

import argparse
from collections.abc import Callable
from importlib import import_module
from shutil import get_terminal_size
from textwrap import fill
from typing import NamedTuple

from spanboost import __version__
from spanboost.cli.usage import CommandParser


class Command(NamedTuple):
    """A command as its help presents it, and the function that runs it."""

    name: str
    help: str
    description: str
    examples: str
    module: str
    function: str
    options: str = "command_options"  # module of the function that adds its options
    usage: str | None = None  # what follows the name, if a list of all options would be long


COMMANDS = (
    Command(
        "demo",
        "compare AutoBoost with single learners and a batch model on a generated stream",
        """\
Run base learners alone, boosted stumps and AutoBoost on a generated stream whose rule changes
halfway. Print the average squared loss after 1, 2, 4, 8, ... rows. Then compare AutoBoost with the
best learner alone, and with gradient boosted trees that are refitted to all rows so far, before and
after the change. The first run compiles for up to a minute or two; later runs take seconds.""",
        """examples:
  spanboost demo
  spanboost demo --rows 100000 -n 64
  spanboost demo --save stream.csv""",
        "spanboost.cli.commands.demo",
        "demo",
    ),
    Command(
        "warmup",
        "compile the code of models ahead, for container images and CI",
        """\
Compile the code of models in several processes; keep it on disk (in NUMBA_CACHE_DIR, if set).""",
        """examples:
  spanboost warmup --learner linear trees --loss squared quantile:0.9""",
        "spanboost.cli.commands.warmup",
        "warmup",
        "warmup_options",
    ),
    Command(
        "train",
        "learn from a stream in one pass and write the model",
        """\
Learn from DATA in one pass and write the model. Every row is predicted before it is learned, so the
printed loss is measured on unseen labels.""",
        """examples:
  spanboost train houses.csv -o houses.sb --label price --ignore id
  spanboost train customers.csv -o customers.sb --label churned --loss logistic
  spanboost train houses.csv -o houses.sb --label price --intervals
  spanboost train 'clicks-*.vw.gz' -o clicks.sb --loss logistic --learner stumps -n 64
  spanboost train big.parquet -o big.sb --checkpoint-every 1000000
  spanboost train big.parquet -o big.sb --checkpoint-every 1000000 --resume
  zcat log.vw.gz | spanboost train - --format vw -f log.sb
  spanboost train kafka://broker:9092/rows -o rows.sb
  spanboost train sqlite:///shop.db --query 'SELECT * FROM orders' --resume-column id -o shop.sb
  spanboost train big.parquet -o big.sb --budget exhaustive --ray head:6379
  spanboost train 'part-*.parquet' -o all.sb --learner linear --ray head:6379 --sharded
  spanboost train huge.vw.zst -o huge.sb --learner linear -n 64 --ray --workers 8""",
        "spanboost.cli.commands.train",
        "train",
        usage="DATA... -o MODEL [options]",
    ),
    Command(
        "evaluate",
        "measure the loss of one or more models on a stream (progressive validation)",
        """\
Predict each row of DATA, then learn from it. Print the average loss; write no model. With
--compare, all models see the same rows in the same pass. The differences of their losses have 95%
intervals that are valid at every row, so you may stop as soon as one model is better.""",
        """examples:
  spanboost evaluate houses.csv --label price --baseline
  spanboost evaluate houses.csv --compare linear,stumps:hull,network:span --plot curves.png
  spanboost evaluate houses.csv -i champion.sb --compare challenger.sb --plot-compare both.png
  spanboost evaluate houses.csv --drift adwin --report page.html
  spanboost evaluate held-out.csv -i houses.sb -t
  spanboost evaluate kafka://broker:9092/rows --rows 10000
  spanboost evaluate unit-rows.csv --learner ball --x-norm 1 --label-range 0,10 --certificate""",
        "spanboost.cli.commands.train",
        "evaluate",
        usage="DATA... [options]",
    ),
    Command(
        "tune",
        "choose the parameters of a booster in one pass",
        """\
Run every combination of the given values on DATA in one pass, with every number of copies up to
-n. Select the combination with the lowest progressive loss on the first part of the rows, and print
its loss on the rest. Without --learner, tune trees and compare them with AutoBoost in the same
pass. DATA is read once and kept in memory. Ctrl-C prints the results so far.""",
        """examples:
  spanboost tune houses.csv --label price -o houses.sb
  spanboost tune houses.csv --learner stumps -l 0.1,0.5,2 --step 0.05,0.1,1 -n 64 --plot tuned.png
  spanboost tune clicks.vw --learner network --hidden 5,10,20 --booster hull --json tuned.json
  spanboost train more.csv -i houses.sb -o more.sb""",
        "spanboost.cli.commands.tune",
        "tune",
        usage="DATA... [-o MODEL] [options]",
    ),
    Command(
        "predict",
        "predict every row with a model",
        """\
Predict every row of DATA; the model does not learn. Columns are matched by name, and a label column
is ignored. The option names of Vowpal Wabbit (-t -i -p) work too.""",
        """examples:
  spanboost predict new-houses.csv -m houses.sb -o prices.csv
  spanboost predict new-houses.csv -m houses.sb --keep id,city
  spanboost predict new-houses.csv -m houses.sb --interval 0.9
  spanboost predict new-houses.parquet -m houses.sb -o prices.parquet
  spanboost predict new.vw -t -i clicks.sb -p -""",
        "spanboost.cli.commands.predict",
        "predict",
        usage="DATA... -m MODEL [options]",
    ),
    Command(
        "explain",
        "print what each feature contributes to a prediction",
        """\
Predict the first rows of DATA and print what each feature contributes, in the units of the
prediction (scores for classes). They are exact for linear functions and stumps, path-based for
trees, and approximate for networks. For auto, they are weighted averages over its experts.

The rows add up to the prediction: (base) is the part that no feature accounts for, and (rest) is
what is not a sum over the experts of auto. For classes, auto averages probabilities, and
contributions refer to scores. (rest) is the difference, and may be the largest row.""",
        """examples:
  spanboost explain new-houses.csv -m houses.sb
  spanboost explain clicks.vw -m clicks.sb --top 20
  spanboost explain new-houses.parquet -m houses.sb --rows 1000 --json > explained.jsonl""",
        "spanboost.cli.commands.explain",
        "explain",
        usage="DATA... -m MODEL [options]",
    ),
    Command(
        "inspect",
        "print the parameters of a model and what it has learned",
        """\
Print what a model is and what it has learned: its label and features, its health and size, the
weights of the experts and the most important features. With --all, also print the parameters, the
effects of the features, what each stage contributes, and the shrinkage sigma of Algorithm 1.""",
        """examples:
  spanboost inspect houses.sb --top 20
  spanboost inspect houses.sb --json
  spanboost inspect http://127.0.0.1:8000""",
        "spanboost.cli.commands.inspect",
        "inspect",
    ),
    Command(
        "export",
        "write a model in a form that only predicts",
        """\
Write what the predictions of a model depend on, and nothing else: no training rows, no rows for
replay and no statistics that only learning needs. A compact model file is much smaller than the
full one. `spanboost predict`, `spanboost inspect` and `spanboost.load` read it; its predictions are
the same, bit for bit. It refuses to learn, so keep the full file to continue learning.

A C file has no dependencies. The comment at its top explains how to compile and call it. An ONNX
file runs in onnxruntime and other runtimes; to write it, install the extra `onnx`. Its inputs are
`numbers` and, if the model has them, `categories`; the metadata of the file name their columns.""",
        """examples:
  spanboost export houses.sb --to compact -o houses-small.sb
  spanboost export houses.sb --to c -o houses.c --name houses
  spanboost export houses.sb --to onnx -o houses.onnx""",
        "spanboost.cli.commands.export",
        "export",
        "export_options",
    ),
    Command(
        "reproduce",
        "run the paper's experiments and print its figures next to ours",
        """\
Run the paper's experiments on its data sets: SGD, regression stumps and networks, alone and with
both algorithms. Parameters (rate, number of copies, and the step of Algorithm 1) are tuned on the
first half of each data set; losses are measured on the second half. Print gains, losses and chosen
parameters next to the paper's figures, and every choice that the paper leaves open. The tables are
Markdown. An interrupted run resumes when it is started again. Each data set is a file NAME.parquet
with the features first and `label` last; docs/reproduction.md lists them.""",
        """examples:
  spanboost reproduce --data DIR --json found.json --report found.html
  spanboost reproduce --download
  spanboost reproduce --sets abalone casp --learners stumps --shuffles 10""",
        "spanboost.cli.commands.reproduce",
        "run",
    ),
    Command(
        "serve",
        "run an HTTP service that predicts rows and learns from labels that arrive later",
        """\
Run an HTTP service. POST /predict predicts rows, POST /learn learns from labels, and / shows a live
dashboard. Rows are JSON objects, JSON Lines or Arrow. The service keeps its state in a folder. It
acknowledges a label only after writing it to the journal (a write-ahead log). After a crash, the
model is the same, bit for bit, as without the crash.""",
        """examples:
  spanboost serve --dir state                           (AutoBoost; the label of a row is `label`)
  spanboost serve --dir state --label price --port 8080
  spanboost serve --dir state -m houses.sb              (continue with a trained model)
  spanboost serve --config service.toml                 (several models, at /m/NAME/)
  curl -d '{"size": 3, "city": "Ulm"}' -H 'Content-Type: application/json' localhost:8000/predict

To listen on an address that other machines can reach, set three tokens as environment variables:
SPANBOOST_PREDICT_TOKEN, SPANBOOST_LEARN_TOKEN and SPANBOOST_ADMIN_TOKEN.""",
        "spanboost.cli.commands.serve",
        "serve",
        "service_options",
        usage="(--dir STATE | --config FILE) [options]",
    ),
    Command(
        "work",
        "predict and learn from Kafka, Redis or a database, and write predictions back",
        """\
Read rows from a stream, predict those without labels, learn those with labels, and write the
predictions to another stream. A message is a JSON object; a label that comes later is an object
with the `id` of its row and the `label`. The worker writes its position in the stream to the same
record of the journal as what it learns. After a crash, no row is lost and none is learned twice;
some predictions may be written twice, with the same id. A worker is also a service: it has the
options, the dashboard, the metrics and the state folder of `spanboost serve`.""",
        """examples:
  spanboost work --from kafka://broker:9092/rows --to kafka://broker:9092/predictions --dir state
  spanboost work --from kafka://broker:9092/rows --labels kafka://broker:9092/labels \\
    --to kafka://broker:9092/predictions --dead-letters kafka://broker:9092/bad --dir state
  spanboost work --from redis://localhost/rows --to redis://localhost/predictions --dir state
  spanboost work --from sqlite:///shop.db --query 'SELECT * FROM orders' --resume-column id \\
    --label price --dir state --drain""",
        "spanboost.cli.commands.work",
        "work",
        "service_options",
    ),
    Command(
        "versions",
        "list the versions of a service's model, pin one, or roll back to it",
        """\
Every snapshot of a service is a version of its model. Without an action, list all versions with the
average loss of their rows. A pinned version is never deleted. `rollback` replaces the model by the
one of an earlier version; the rows learned since then stay in the journal, but the model forgets
them. For a running service, give its address and set the environment variable
SPANBOOST_ADMIN_TOKEN. A state folder can be changed only while no service uses it.""",
        """examples:
  spanboost versions state
  spanboost versions http://127.0.0.1:8000 pin 1234
  spanboost versions http://127.0.0.1:8000 rollback 1234""",
        "spanboost.cli.commands.versions",
        "versions",
        "service_options",
    ),
    Command(
        "challenge",
        "let another model learn the rows of a service, and replace its model by a better one",
        """\
Let a challenger learn in the shadow of a service's model, on the same rows. Both models predict
every row before they learn it. The 95% interval of the difference of their losses is valid at every
row, so you can look at any time. `begin` starts a challenge with a new model (options as in
`spanboost train`) or with a model file (-m). `promote` makes the challenger the model of the
service, and `withdraw` ends the challenge. For a running service, give its address and set the
environment variable SPANBOOST_ADMIN_TOKEN.""",
        """examples:
  spanboost challenge http://127.0.0.1:8000 begin --learner stumps -n 64
  spanboost challenge http://127.0.0.1:8000 begin -m houses.sb --promote when-better
  spanboost challenge http://127.0.0.1:8000              (show the comparison)
  spanboost challenge http://127.0.0.1:8000 promote""",
        "spanboost.cli.commands.challenge",
        "challenge",
        "service_options",
        usage="STATE_OR_URL [options]",
    ),
    Command(
        "check",
        "check the state folder of a service that is not running",
        """\
Read all snapshots and the whole journal of a state folder. Print what is damaged or missing, by
file and record, and whether `spanboost serve` can start with the folder. Change nothing. The exit
status is 0 for a sound folder, 1 if it has problems, and 2 if it cannot be checked. Stop
the service first.""",
        """examples:
  spanboost check state""",
        "spanboost.cli.commands.state_folder",
        "check",
        "service_options",
    ),
    Command(
        "repair",
        "repair the state folder of a service, or exclude a record from it",
        """\
Print what a repair of a state folder would lose. With --yes, write a new journal with all records
that can be read, check that the service can start with it, and keep the old one next to it. With
--quarantine, also take a record out of the journal, for example one that needs more memory than
there is, and write its rows to a file. The exit status is 1 without --yes if there is something to
repair. Stop the service first, and copy the folder.""",
        """examples:
  spanboost repair state                          (print what would be lost)
  spanboost repair state --yes
  spanboost repair state --quarantine 1234 --yes""",
        "spanboost.cli.commands.state_folder",
        "repair",
        "service_options",
    ),
    Command(
        "erase",
        "erase rows by their ids from the state folder of a service",
        """\
Print where the rows of some ids are, and what the model would keep of them. With --yes, write the
journal and the files of pending rows again without these rows, and delete the snapshots that have
learned them. The next start replays the journal from an older snapshot: then the model is the same,
bit for bit, as if it had never learned the rows. If no snapshot is old enough, the model keeps what
it has learned. `spanboost serve --keep-days` keeps older snapshots. Stop the service first: a
running service cannot erase rows. Followers must copy the folder again.""",
        """examples:
  spanboost erase state 'flat 17'                 (print what would remain)
  spanboost erase state 'flat 17' 'flat 18' --yes""",
        "spanboost.cli.commands.erase",
        "erase",
        "service_options",
    ),
    Command(
        "backup",
        "write a backup of a service, running or not, to a file",
        """\
Write the snapshots, the journal and the predicted rows that wait for their labels to a tar archive.
All of them are from the same moment, and a running service continues to predict and learn. SOURCE
is the address of a running service, or the state folder of one that is stopped. For an address, set
SPANBOOST_ADMIN_TOKEN if the service has tokens. Restore the file with `spanboost restore`.""",
        """examples:
  spanboost backup http://127.0.0.1:8000 backup.tar
  spanboost backup state backup.tar""",
        "spanboost.cli.commands.backup",
        "backup",
        "service_options",
    ),
    Command(
        "restore",
        "restore the state of a service from a backup, or at an earlier record or time",
        """\
Write a new state folder from a backup file or another state folder. With --to, the new folder ends
at an earlier record or time; then predicted rows that wait for their labels are not restored. The
earliest record that can be restored is the one of the oldest snapshot; `spanboost check` prints it.
SOURCE does not change. If it is the folder of a service, stop the service first.""",
        """examples:
  spanboost restore backup.tar --dir restored
  spanboost restore backup.tar --to 1234 --dir restored
  spanboost restore state --to 2026-01-31T12:00 --dir restored
  spanboost restore state --to 2026-01-31T12:00:00+01:00 --dir restored""",
        "spanboost.cli.commands.state_folder",
        "restore",
        "service_options",
    ),
)


def parser(name: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands; with a name, only this command has its options."""
    parser = CommandParser(
        prog="spanboost",
        description="Online gradient boosting: turn a weak online learner into a strong one, in "
        "one pass over a stream.",
        epilog="Start with `spanboost demo`. Run `spanboost COMMAND --help` for the options and "
        "examples of a command.",
    )
    parser.add_argument("--version", action="version", version=f"spanboost {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    width = max(40, get_terminal_size().columns - 2)  # the width that argparse uses
    for command in COMMANDS:
        paragraphs = [fill(one, width) for one in command.description.split("\n\n")]
        one = commands.add_parser(
            command.name,
            usage=command.usage and f"spanboost {command.name} {command.usage}",
            help=command.help,
            description="\n\n".join([*paragraphs, command.examples]),  # examples before options
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in (None, command.name):
            options = import_module(f"spanboost.cli.{command.options}")
            getattr(options, f"add_{command.name}_options")(one)
            one.set_defaults(command=_runner(command), flags=one.flags)
    return parser


def _runner(command: Command) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports the module of a command and runs the command."""

    def run(args: argparse.Namespace) -> int:
        return int(getattr(import_module(command.module), command.function)(args))

    return run
