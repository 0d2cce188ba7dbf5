"""`brain init` and `brain db …`: the schema, and the embedded server."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from brain.common import Db, Json, get_database, get_settings, print_json, say


def init(
    *,
    encoder: Annotated[
        str | None, Parameter(help="Encoder to register: a name, a folder, or hashing (for trying out).")
    ] = None,
    db: Db = None,
) -> int:
    """Create or upgrade the schema and register the encoder. Safe twice, and from two machines at once.

    Without --encoder a database that has one keeps it; a new one gets BRAIN_ENCODER, else all-mpnet-base-v2.
    """
    from corpus.encoders import find_active, register_encoder
    from corpus.schema import migrate
    from encoders.canary import find_reference
    from encoders.load import resolve_spec

    settings = get_settings()
    database = get_database(db, settings, any_schema=True)
    done = migrate(database)
    with database.connect() as connection:
        active = find_active(connection)
        if encoder is None and active is not None:
            name = active.name
        else:
            spec = resolve_spec(encoder or settings.encoder)
            name = register_encoder(connection, spec, activate=True, canary=find_reference(spec)).name
    say(
        f"{database.url.masked}: schema {'created' if len(done) > 1 else 'upgraded' if done else 'up to date'}, encoder {name}"
    )
    return 0


def start(*, db: Db = None) -> int:
    """Start the embedded server; nothing to do when it runs."""
    database = get_database(db, any_schema=True)
    say(f"{database.url.masked} runs")
    return 0


def stop(*, db: Db = None) -> int:
    """Stop the embedded server. No running worker or search server starts it again by itself; any new command does."""
    server, address = _embedded(db)
    say(f"{address} {'stopped' if server.stop() else 'did not run'}")
    return 0


def status(*, db: Db = None, json: Json = False) -> int:
    """Say whether the database answers; nothing is started. Exit 4 when it does not."""
    import psycopg

    from corpus.database import Database, translate

    settings = get_settings()
    database = Database.named(db, settings)
    try:
        with psycopg.connect(database.conninfo) as connection:
            row = connection.execute(
                "SELECT current_setting('server_version'), pg_database_size(current_database())"
            ).fetchone()
    except psycopg.Error as error:
        if json:
            print_json(
                {"database": database.url.masked, "is_running": False, "detail": str(translate(error, database))}
            )
            return 4
        raise translate(error, database) from error
    assert row is not None
    if json:
        print_json({"database": database.url.masked, "is_running": True, "version": row[0], "n_bytes": row[1]})
    else:
        print(f"{database.url.masked} runs: PostgreSQL {row[0]}, {row[1] / 2**20:.0f} MB")
    return 0


def url(*, db: Db = None) -> int:
    """Print the libpq address of the database, for psql and the like on this machine."""
    from psycopg import conninfo

    database = get_database(db, any_schema=True)
    if database.embedded is None:
        print(database.url.conninfo)
        return 0
    parts = conninfo.conninfo_to_dict(database.embedded.conninfo)
    print(f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}&port={parts['port']}")
    return 0


def listen(address: str, /, *, db: Db = None) -> int:
    """Open the embedded server to other machines at HOST:PORT, with a password, and print the address that they use.

    Example: `brain db listen 10.0.0.5:5433`. The server restarts; programs on this machine reconnect by themselves. Each
    call makes a new password: machines that use an address printed before need the new one.
    """
    import secrets

    from corpus.errors import UsageError

    host, colon, port = address.rpartition(":")
    if (
        not colon
        or not port.isdigit()
        or not 0 < int(port) < 65536
        or not all(c.isalnum() or c in ".:-[]*_" for c in host)
    ):
        raise UsageError(f"{address!r} is no HOST:PORT.", mend="Example: brain db listen 10.0.0.5:5433")
    server, _ = _embedded(db)
    password = secrets.token_urlsafe(18)
    host = host.strip("[]")
    is_renewed = server.listen(host, int(port), password)
    shown = f"[{host}]" if ":" in host else host
    print(f"postgresql://brain:{password}@{shown}:{port}/brain")
    if is_renewed:
        say("the password is new: workers and servers on other machines need this address in place of an earlier one")
    return 0


def _embedded(db: str | None):  # noqa: ANN202 - EmbeddedServer is imported where it is used
    from corpus.database import Database
    from corpus.errors import UsageError

    settings = get_settings()
    database = Database.named(db, settings)
    if database.embedded is None:
        raise UsageError(
            f"{database.url.masked} is not the embedded server.",
            mend="Start and stop a server of your own with its own tools.",
        )
    return database.embedded, database.url.masked
