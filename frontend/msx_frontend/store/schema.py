"""The tables of the store. `user_version` says which schema a file has."""

VERSION = 1
TABLES = """
    CREATE TABLE records (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        owner TEXT NOT NULL,
        created REAL NOT NULL,
        expires REAL NOT NULL,
        head BLOB NOT NULL,
        bytes INTEGER NOT NULL,
        UNIQUE (kind, id)
    );
    CREATE INDEX records_by_end ON records (expires);
    CREATE INDEX records_of_owner ON records (kind, owner, number);
    CREATE TABLE parts (
        record INTEGER NOT NULL REFERENCES records (number) ON DELETE CASCADE,
        name TEXT NOT NULL,
        place INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (record, name, place)
    );
    CREATE TABLE totals (
        kind TEXT NOT NULL,
        owner TEXT NOT NULL,
        count INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        PRIMARY KEY (kind, owner)
    ) WITHOUT ROWID;
    CREATE TRIGGER record_came AFTER INSERT ON records BEGIN
        INSERT INTO totals VALUES (NEW.kind, NEW.owner, 1, NEW.bytes)
        ON CONFLICT DO UPDATE SET count = count + 1, bytes = bytes + NEW.bytes;
    END;
    CREATE TRIGGER record_grew AFTER UPDATE OF bytes ON records BEGIN
        UPDATE totals SET bytes = bytes + NEW.bytes - OLD.bytes WHERE kind = NEW.kind AND owner = NEW.owner;
    END;
    CREATE TRIGGER record_went AFTER DELETE ON records BEGIN
        UPDATE totals SET count = count - 1, bytes = bytes - OLD.bytes WHERE kind = OLD.kind AND owner = OLD.owner;
        DELETE FROM totals WHERE kind = OLD.kind AND owner = OLD.owner AND count = 0;
    END;
    CREATE TRIGGER part_came AFTER INSERT ON parts BEGIN
        UPDATE records SET bytes = bytes + length(NEW.data) WHERE number = NEW.record;
    END;
    CREATE TRIGGER part_went AFTER DELETE ON parts BEGIN
        UPDATE records SET bytes = bytes - length(OLD.data) WHERE number = OLD.record;
    END;
"""
"""`totals` is kept by triggers: bounds are checked without a look at each record."""
