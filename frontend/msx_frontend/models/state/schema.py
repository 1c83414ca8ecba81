"""The versions of the state's schema: SQLite's `user_version` says which one a file has."""

from msx_frontend import __version__

SCRIPTS = (
    """
    CREATE TABLE versions (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        url TEXT NOT NULL,
        digest TEXT NOT NULL,
        options TEXT NOT NULL,
        min_workers INTEGER NOT NULL,
        max_workers INTEGER NOT NULL,
        is_default INTEGER NOT NULL,
        created_at REAL NOT NULL,
        UNIQUE (name, version)
    );
    CREATE UNIQUE INDEX one_default ON versions (name) WHERE is_default;
    """,
    """
    CREATE TABLE workflows (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        url TEXT NOT NULL,
        workers TEXT NOT NULL,
        created_at REAL NOT NULL
    );
    """,
    """
    CREATE TABLE traffic (
        name TEXT PRIMARY KEY,
        rule TEXT NOT NULL
    );
    """,
    """
    CREATE TABLE written_by (
        msx TEXT NOT NULL
    );
    """,
    """
    CREATE TABLE aliases (
        name TEXT PRIMARY KEY,
        aliases TEXT NOT NULL
    );
    """,
)
"""One script per version; a file of version n runs those from n on. Only append: files of older MSX must stay
readable."""


def migration(version: int) -> str:
    """Migrate from `version` to the newest, in one transaction. `written_by` says which MSX brought the newest one."""
    noted = f"DELETE FROM written_by; INSERT INTO written_by VALUES ('{__version__}');"  # noqa: S608 - a constant
    return f"BEGIN IMMEDIATE; {' '.join(SCRIPTS[version:])} {noted} PRAGMA user_version = {len(SCRIPTS)}; COMMIT;"
