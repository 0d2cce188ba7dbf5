"""The command `brain`: one module per command group, loaded when its command is called.

Exit codes: 0 done, 1 failed, 2 usage, 3 done with failures listed, 4 database unreachable, 5 refused.
"""

from __future__ import annotations

import sys
from importlib import metadata

from cyclopts import App

_COMMANDS = {
    "init": ("brain.database:init", "Create or upgrade the schema and register the encoder."),
    "ingest": ("brain.ingest:ingest", "Bring papers in: topics, PDFs, files, JSONL."),
    "reextract": ("brain.reextract:reextract", "Read full texts anew that an older extractor has read."),
    "search": ("brain.search:search", "Ask one question."),
    "paper": ("brain.search:paper", "Show one paper, or its whole text."),
    "papers": ("brain.search:papers", "List papers with their state."),
    "status": ("brain.status:status", "What waits, runs, failed and is done; the nodes; the rest of the time."),
    "failures": ("brain.status:failures", "What failed and why; send it back to the queue."),
    "sources": ("brain.sources:sources", "Show the open sources: on, off, why, limit, what today gave."),
    "harvest": ("brain.harvest:harvest", "Take the day's new preprints for the topics that ask for it."),
    "mark": ("brain.mark:mark", "Mark a paper: star, read or skip."),
    "split": ("brain.mark:split", "Undo a merge of two papers."),
    "text": ("brain.text:text", "What extraction makes of a file."),
    "encode": ("brain.encode:encode", "The embedding of each line."),
    "receipt": ("brain.receipt:receipt", "Write what the corpus is; name what is missing beside an older receipt."),
    "rebuild": ("brain.rebuild:rebuild", "Bring everything back from seed files, store and vector shards."),
    "backup": ("brain.backup:backup", "Copy the embedded server's database, verified."),
    "restore": ("brain.backup:restore", "Put a verified backup in the embedded server's place."),
    "selftest": ("brain.selftest:selftest", "Run every part of the intake once, for real, and say what does not work."),
    "tune": ("brain.tune:tune", "Choose ef_search against exact search and store it with the evidence."),
    "doctor": ("brain.doctor:doctor", "Check everything that can be wrong and say the mend."),
}
_GROUPS = {
    "db": ("The embedded database server.", {
        "start": ("brain.database:start", "Start the embedded server."),
        "stop": ("brain.database:stop", "Stop the embedded server; nothing starts it again by itself."),
        "status": ("brain.database:status", "Whether the database answers."),
        "url": ("brain.database:url", "Print the address that other programs of this machine use."),
        "listen": ("brain.database:listen", "Open the embedded server to other machines and print their address."),
    }),
    "seed": ("Seed files: what the corpus is about.", {
        "list": ("brain.seed:list_topics", "List the topics."),
        "show": ("brain.seed:show", "Show the papers of a topic's seed file."),
        "add": ("brain.seed:add", "Put papers into a topic and ingest them."),
        "export": ("brain.seed:export", "Write every paper of the database into the seed files."),
    }),
    "vectors": ("Embeddings by content.", {
        "export": ("brain.vectors:export", "Write the active encoder's embeddings into shards."),
        "import": ("brain.vectors:import_", "Read embeddings from shards."),
        "index": ("brain.vectors:index", "Choose how the passages' index compares: halfvec, or binary with exact rescoring."),
    }),
    "encoder": ("Encoders side by side.", {
        "list": ("brain.encoder:list_encoders", "List the encoders of the database."),
        "add": ("brain.encoder:add", "Add a second encoder."),
        "fill": ("brain.encoder:fill", "Queue everything for an encoder that does not serve yet."),
        "compare": ("brain.encoder:compare", "Show two encoders on a fixed test."),
        "activate": ("brain.encoder:activate", "Build the index of an encoder and let it serve."),
        "retire": ("brain.encoder:retire", "Free the space of an encoder that does not serve."),
    }),
    "topic": ("What acquisition did for a topic.", {
        "report": ("brain.topic:report", "Rounds, sources, full texts, what is missing and why, what is unseen."),
    }),
    "source": ("The open scholarly sources.", {
        "parse": ("brain.source:parse", "Print the works that an adapter reads in a stored payload."),
    }),
}  # fmt: skip


def make_app() -> App:
    """The command line; nothing of a command's module is imported before it is called."""
    app = App(
        name="brain",
        help="A farm that embeds research papers, and a search server that answers with a quotable passage.\n\n"
        'First steps: `brain init`, `brain ingest --pdfs DIR`, `embed-worker --drain`, `brain search "…"`.',
        version=lambda: metadata.version("research-brain"),
    )  # fmt: skip
    for name, (path, text) in _COMMANDS.items():
        app.command(path, name=name, help=text)
    for group, (text, commands) in _GROUPS.items():
        sub = App(name=group, help=text)
        for name, (path, about) in commands.items():
            sub.command(path, name=name, help=about)
        app.command(sub)
    return app


def main(words: list[str] | None = None) -> None:
    """Run `brain` and exit with its code."""
    from corpus.command import run_app

    sys.exit(run_app(make_app(), words, log_level="warning"))


if __name__ == "__main__":
    main()
